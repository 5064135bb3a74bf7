-- flags: allow-oom
-- parts: lanes records homes waiting ends members
-- Remove ended tasks that are past their retention or too many, and workers that were lost long ago. Arguments: limit, how
-- long a lost worker is kept. Reply: how many tasks were removed, dead letters that were dropped, then the workers that were
-- removed. Tasks in the outbox stay.
local limit, kept = tonumber(ARGV[3]), tonumber(ARGV[4])
local entries, total = {}, 0
local in_outbox = call('ZCARD', KEY .. 'outbox')
local reach = limit + math.min(in_outbox, 1000) -- those stay, and must be read past

local function fetch(status)
  local stream = KEY .. 'ended:' .. ENDS[status]
  total = total + call('XLEN', stream)
  for _, entry in ipairs(call('XRANGE', stream, '-', '+', 'COUNT', reach)) do
    local position = tonumber(string.match(entry[1], '^%d+'))
    entries[#entries + 1] = { at = position, entry = entry[1], stream = stream, id = entry[2][2] }
  end
end

for status in pairs(ENDS) do
  fetch(status)
end
table.sort(entries, function(a, b) return a.at < b.at end)

local pruned, excess = 0, total - RETENTION_MAX

-- Tasks beyond `retention_max` are removed without being read. They are the oldest of all, so they are the heads of the
-- streams of ends, which are trimmed.
local function prune_excess(count)
  local last, keys = {}, {}
  for i = 1, count do
    last[entries[i].stream], keys[i] = entries[i].at, TASK .. entries[i].id
  end
  for stream, at in pairs(last) do
    call('XTRIM', stream, 'MINID', whole(at) .. '-1')
  end
  for first = 1, #keys, SLICE do
    call('DEL', unpack(keys, first, math.min(first + SLICE - 1, #keys)))
  end
  return count
end

if in_outbox == 0 and excess > 0 then
  pruned = prune_excess(math.min(limit, excess, #entries))
end
for i = pruned + 1, #entries do
  local entry = entries[i]
  if in_outbox == 0 or not call('ZSCORE', KEY .. 'outbox', entry.id) then
    local task = load(entry.id)
    local is_old = not task or task.broken or task.finished_at <= now - RETENTION
    if pruned >= limit or (not is_old and pruned >= excess) then
      break
    end
    call('XDEL', entry.stream, entry.entry)
    if task and task.broken then
      end_unreadable(task)
    elseif task then
      forget(task)
    end
    pruned = pruned + 1
  end
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
  if lost_at and tonumber(lost_at) <= now - kept then
    forget_worker(times[i])
    answer[#answer + 1] = times[i]
  end
end
return reply(answer)
