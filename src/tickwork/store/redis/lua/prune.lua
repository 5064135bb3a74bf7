-- flags: allow-oom
-- parts: lanes records homes waiting ends members
-- Remove ended tasks that are past their retention or too many, and workers that were lost long ago. Arguments: limit, how
-- long a lost worker is kept. Reply: how many tasks were removed, dead letters that were dropped, then the workers that were
-- removed. Tasks in the outbox stay.
local limit, lost_kept = tonumber(ARGV[3]), tonumber(ARGV[4])
local in_outbox = call('ZCARD', KEY .. 'outbox')
local some_kept = call('EXISTS', KEY .. 'kept') == 1
local pruned = 0

local function waits_in_outbox(id)
  return in_outbox > 0 and call('ZSCORE', KEY .. 'outbox', id)
end

-- Tasks with a retention of their own, by its end; those of the same end in the order in which they ended. Some more are looked at
-- than are removed, since those in the outbox stay.
local LOOK_MORE = 100
local over = {}
local due = call('ZRANGEBYSCORE', KEY .. 'kept', '-inf', whole(now), 'WITHSCORES', 'LIMIT', 0, limit + LOOK_MORE)
for i = 1, #due, 2 do
  local task = load(due[i])
  if not task or task.broken or not ENDS[task.status] then
    call('ZREM', KEY .. 'kept', due[i])
  elseif not waits_in_outbox(due[i]) then
    over[#over + 1] = { at = tonumber(due[i + 1]), task = task }
  end
end
table.sort(over, function(a, b)
  return a.at < b.at or a.at == b.at and a.task.position < b.task.position
end)
for i = 1, math.min(limit, #over) do
  leave(over[i].task)
  forget(over[i].task)
  pruned = pruned + 1
end

-- The first entries of the streams of ends. Those before `walked` were looked at before, and have a retention of their own.
local entries, total = {}, 0
local reach = limit + math.min(in_outbox + call('ZCARD', KEY .. 'kept'), 1000) -- those stay, and must be read past

local function fetch(status, from)
  local stream = KEY .. 'ended:' .. ENDS[status]
  for _, entry in ipairs(call('XRANGE', stream, from, '+', 'COUNT', reach)) do
    local position = tonumber(string.match(entry[1], '^%d+'))
    entries[#entries + 1] = { at = position, entry = entry[1], stream = stream, id = entry[2][2], status = status }
  end
end

for status in pairs(ENDS) do
  total = total + call('XLEN', KEY .. 'ended:' .. ENDS[status])
end
local excess = total - RETENTION_MAX
for status in pairs(ENDS) do
  local walked = some_kept and excess <= 0 and call('HGET', KEY .. 'walked', status)
  fetch(status, walked and '(' .. walked .. '-0' or '-')
end
table.sort(entries, function(a, b) return a.at < b.at end)

-- Tasks beyond `retention_max` are removed without being read. They are the oldest of all, so they are the heads of the
-- streams of ends, which are trimmed.
local function prune_excess(count)
  local last, keys, ids = {}, {}, {}
  for i = 1, count do
    local id = entries[i].id
    ids[i] = id
    last[entries[i].stream] = entries[i].at
    keys[#keys + 1] = TASK .. id
    keys[#keys + 1] = KEY .. 'lines:' .. id
    keys[#keys + 1] = KEY .. 'attempts:' .. id
  end
  for stream, at in pairs(last) do
    call('XTRIM', stream, 'MINID', whole(at) .. '-1')
  end
  for first = 1, #keys, SLICE do
    call('DEL', unpack(keys, first, math.min(first + SLICE - 1, #keys)))
  end
  if some_kept then
    in_slices('ZREM', KEY .. 'kept', ids)
  end
  return count
end

local first, walking, walked = 1, true, {}
if in_outbox == 0 and excess > 0 and not INDEXED then
  local count = prune_excess(math.max(math.min(limit - pruned, excess, #entries), 0))
  pruned, excess, first = pruned + count, excess - count, count + 1
end
for i = first, #entries do
  local entry = entries[i]
  if pruned >= limit then
    break
  end
  if waits_in_outbox(entry.id) then
    walking = false -- it must be looked at again
  elseif excess <= 0 and some_kept and call('ZSCORE', KEY .. 'kept', entry.id) then
    if walking then
      walked[entry.status] = entry.at
    end
  else
    local task = load(entry.id)
    if excess <= 0 and task and not task.broken and task.finished_at > now - RETENTION then
      break
    end
    call('XDEL', entry.stream, entry.entry)
    if task and task.broken then
      end_unreadable(task)
    elseif task then
      forget(task)
    end
    pruned, excess = pruned + 1, excess - 1
  end
end
for status, at in pairs(walked) do
  call('HSET', KEY .. 'walked', status, whole(at))
end

bound_dead()

-- Removes an empty lane, since queues come and go. It is created again when it is needed.
local function forget_lane(lane)
  local stream = KEY .. 'stream:' .. lane
  if call('XLEN', stream) == 0 then
    call('DEL', stream)
    call('SREM', KEY .. 'lanes', lane)
    local queue = string.match(lane, '^%a+:(.*)$')
    local streams = KEY .. 'stream:'
    if call('EXISTS', streams .. 'high:' .. queue, streams .. 'normal:' .. queue, streams .. 'low:' .. queue) == 0 then
      call('DEL', KEY .. 'wake:' .. queue)
    end
  end
end

for _, lane in ipairs(call('SRANDMEMBER', KEY .. 'lanes', 500)) do
  if not call('ZRANGE', KEY .. 'front:' .. lane, 0, 0)[1] then
    forget_lane(lane)
  end
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
return reply(answer)
