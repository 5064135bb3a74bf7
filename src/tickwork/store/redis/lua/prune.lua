-- flags: allow-oom
-- parts: lanes records homes waiting ends members
-- Remove ended tasks that are past their retention or too many, and workers that were lost long ago. Arguments: limit, how
-- long a lost worker is kept. Reply: how many tasks were removed, dead letters that were dropped, then the workers that were
-- removed. Tasks in the outbox stay.
local limit, lost_kept = tonumber(ARGV[3]), tonumber(ARGV[4])
local in_outbox = call('ZCARD', KEY .. 'outbox')
local some_kept = call('EXISTS', KEY .. 'kept') == 1
local pruned = 0

-- Which of these tasks are in a sorted set, as a table by their ids.
local function which_in(set, ids)
  local found = {}
  for i, score in ipairs(#ids > 0 and call('ZMSCORE', KEY .. set, unpack(ids)) or ids) do
    found[ids[i]] = score
  end
  return found
end

-- What is needed of an ended task in order to remove it: the first part of its state, without label, body and extras. Nil if
-- that is not enough.
local END = FRESH .. 'I4HI7I6I6'
local END_SIZE = struct.size(END)

local function glance(id)
  local head = redis.pcall('GETRANGE', TASK .. id, 0, GLANCE)
  if head.err or #head < LABEL_AT - 1 then
    return nil
  end
  local at = size_of(head) + 1
  if #head < at + END_SIZE - 1 then
    head, at = call('GETRANGE', TASK .. id, at - 1, at + END_SIZE - 2), 1
    if #head < END_SIZE then
      return nil
    end
  end
  local status, _, _, watched, _, _, _, _, position, _, _, _, _, finished_at = struct.unpack(END, head, at)
  if not ENDS[status] then
    return nil
  end
  return { status = status, watched = watched, position = position, finished_at = finished_at }
end

-- Tasks are removed together: by `flush`, with few commands.
local gone, heads, middles = {}, {}, {}

-- An entry at the head of a stream is trimmed, others have to be named.
local function remove(id, stream, at, is_head)
  gone[#gone + 1] = id
  if is_head then
    heads[stream] = at
  else
    middles[stream] = middles[stream] or {}
    table.insert(middles[stream], whole(at) .. '-0')
  end
  pruned = pruned + 1
end

local function flush()
  local keys = {}
  for i, id in ipairs(gone) do
    keys[3 * i - 2], keys[3 * i - 1], keys[3 * i] = TASK .. id, KEY .. 'lines:' .. id, KEY .. 'attempts:' .. id
  end
  for first = 1, #keys, SLICE do
    call('DEL', unpack(keys, first, math.min(first + SLICE - 1, #keys)))
  end
  for stream, at in pairs(heads) do
    call('XTRIM', stream, 'MINID', whole(at) .. '-1')
  end
  for stream, entries in pairs(middles) do
    in_slices('XDEL', stream, entries)
  end
  if some_kept then
    in_slices('ZREM', KEY .. 'kept', gone)
  end
  gone, heads, middles = {}, {}, {}
end

-- Removes a task that is more than its record and its entry.
local function remove_with_care(id, stream, at)
  local task = load(id)
  call('XDEL', stream, whole(at) .. '-0')
  if task and task.broken then
    end_unreadable(task)
  elseif task then
    forget(task)
  end
  pruned = pruned + 1
end

local function stream_of(status)
  return KEY .. 'ended:' .. ENDS[status]
end

-- Tasks with a retention of their own, by its end; those of the same end in the order in which they ended. Some more are looked at
-- than are removed, since those in the outbox stay.
local LOOK_MORE = 100
local over = {}
local due = call('ZRANGEBYSCORE', KEY .. 'kept', '-inf', whole(now), 'WITHSCORES', 'LIMIT', 0, limit + LOOK_MORE)
for i = 1, #due, 2 do
  local task = glance(due[i])
  if not task then
    call('ZREM', KEY .. 'kept', due[i])
  elseif not (in_outbox > 0 and call('ZSCORE', KEY .. 'outbox', due[i])) then
    task.id, task.until_at = due[i], tonumber(due[i + 1])
    over[#over + 1] = task
  end
end
table.sort(over, function(a, b)
  return a.until_at < b.until_at or a.until_at == b.until_at and a.position < b.position
end)
for i = 1, math.min(limit, #over) do
  local task = over[i]
  if INDEXED or task.watched == 1 then
    remove_with_care(task.id, stream_of(task.status), task.position)
  else
    remove(task.id, stream_of(task.status), task.position, false)
  end
end
flush()

local excess = -RETENTION_MAX
for status in pairs(ENDS) do
  excess = excess + call('XLEN', stream_of(status))
end

-- The ends of all statuses in their order, read from each stream as far as they are needed. Those before `walked` were looked at
-- before, and have a retention of their own.
local PIECE = 100
local sources = {}

local function read_on(source)
  source.entries, source.next = call('XRANGE', source.stream, source.from, '+', 'COUNT', PIECE), 1
  local ids = {}
  for i, entry in ipairs(source.entries) do
    ids[i] = entry[2][2]
  end
  source.ids = ids
  source.in_outbox = in_outbox > 0 and which_in('outbox', ids) or {}
  source.kept = some_kept and which_in('kept', ids) or {}
end

-- Sets the position of the next entry, nil behind the last.
local function place(source)
  local entry = source.entries[source.next]
  source.at = entry and tonumber(string.sub(entry[1], 1, -3)) -- without '-0'
end

local function advance(source)
  source.next = source.next + 1
  if source.next > #source.entries then
    source.from = '(' .. whole(source.at) .. '-0'
    read_on(source)
  end
  place(source)
end

for status in pairs(ENDS) do
  local walked = some_kept and excess <= 0 and call('HGET', KEY .. 'walked', status)
  local source = { status = status, stream = stream_of(status), from = walked and '(' .. walked .. '-0' or '-', is_head = not walked }
  read_on(source)
  place(source)
  sources[#sources + 1] = source
end

-- The source of the first entry, and the position up to which all entries are from it.
local function first_source()
  local first, up_to = nil, math.huge
  for _, source in ipairs(sources) do
    if source.at and (not first or source.at < first.at) then
      first, up_to = source, first and first.at or up_to
    elseif source.at then
      up_to = math.min(up_to, source.at)
    end
  end
  return first, up_to
end

local looks = limit + math.min(in_outbox + call('ZCARD', KEY .. 'kept'), 1000) -- those stay, and must be read past
local walking, walked = true, {}

-- Looks at the next entry of a source. False when this task and all that follow stay.
local function prune_next(source)
  local id = source.ids[source.next]
  if source.in_outbox[id] then
    walking, source.is_head = false, false -- it must be looked at again
    return true
  end
  if excess <= 0 and source.kept[id] then
    source.is_head = false
    if walking then
      walked[source.status] = source.at
    end
    return true
  end
  -- Those that are too many are removed without being read.
  local task = excess <= 0 and glance(id)
  if task and task.finished_at > now - RETENTION then
    return false
  end
  if INDEXED or excess <= 0 and (not task or task.watched == 1) then
    remove_with_care(id, source.stream, source.at)
  else
    remove(id, source.stream, source.at, source.is_head)
  end
  excess = excess - 1
  return true
end

local source, up_to = first_source()
while source and pruned < limit and looks > 0 and prune_next(source) do
  looks = looks - 1
  advance(source)
  if not source.at or source.at > up_to then
    source, up_to = first_source()
  end
end
flush()
for status, at in pairs(walked) do
  call('HSET', KEY .. 'walked', status, whole(at))
end

bound_dead()

-- What is known of keys that are not ahead of their fair lanes any more. With many lanes, some are looked at each time.
local LANES_MAX = 500
local lane_count = call('ZCARD', KEY .. 'virtual')
local first_lane = lane_count > LANES_MAX and now % lane_count or 0
local fair_lanes = lane_count > 0 and call('ZRANGE', KEY .. 'virtual', first_lane, first_lane + LANES_MAX - 1, 'WITHSCORES') or {}
for i = 1, #fair_lanes, 2 do
  forget_turns(fair_lanes[i], tonumber(fair_lanes[i + 1]), limit)
end

local answer = { pruned, dropped }
local times = call('HGETALL', KEY .. 'workers:times')
for i = 1, #times, 2 do
  local lost_at = string.match(times[i + 1], '^%d+ %d+ %d+ (%d+)$')
  if lost_at and tonumber(lost_at) <= now - lost_kept then
    forget_worker(times[i])
    answer[#answer + 1] = times[i]
  end
end
if pruned >= limit then -- the rest follows with a call that finds less to do
  return reply(answer)
end

-- Removes an empty lane, since queues come and go. It is created again when it is needed.
local function forget_lane(lane)
  local stream = KEY .. 'stream:' .. lane
  if call('XLEN', stream) == 0 then
    call('DEL', stream)
    call('SREM', KEY .. 'lanes', lane)
    local queue = string.match(lane, '^%a+:(.*)$')
    local high, normal, low = 'high:' .. queue, 'normal:' .. queue, 'low:' .. queue
    local streams, fairs = KEY .. 'stream:', KEY .. 'fair:'
    if call('EXISTS', streams .. high, streams .. normal, streams .. low, fairs .. high, fairs .. normal, fairs .. low) == 0 then
      call('DEL', KEY .. 'wake:' .. queue)
    end
  end
end

for _, lane in ipairs(call('SRANDMEMBER', KEY .. 'lanes', 500)) do
  if call('EXISTS', KEY .. 'front:' .. lane, KEY .. 'fair:' .. lane) == 0 then
    forget_lane(lane)
  end
end

return reply(answer)
