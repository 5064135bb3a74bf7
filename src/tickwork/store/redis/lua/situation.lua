-- flags: no-writes
-- parts: lanes records
-- What keeps a task from running, at one moment. Arguments: id, how many tasks before it are counted at most. Reply: nothing when
-- there is no such task; else its value, the end of its lease, how many ready tasks are taken before it, the pauses of its
-- queue and type (nothing where there is none), then name and number of tasks of each worker that runs some.
local AHEAD_MAX = tonumber(ARGV[4])
local task = load(ARGV[3])
if not task then
  return reply(false)
end

local function count_front(lane, until_score)
  return call('ZCOUNT', KEY .. 'front:' .. lane, '-inf', until_score)
end

local function count_ahead()
  local queue, own = task.kind.queue, task.kind.lane
  local ahead = 0
  for _, band in ipairs({ 'high', 'normal', 'low' }) do
    local lane = band .. ':' .. queue
    if lane == own then
      break
    end
    ahead = ahead + count_front(lane, '+inf') + call('XLEN', KEY .. 'stream:' .. lane) + call('ZCARD', KEY .. 'fair:' .. lane)
  end
  local before = '(' .. whole(task.position)
  if task.place == FRONT then
    return ahead + count_front(own, before)
  end
  ahead = ahead + count_front(own, '+inf')
  if task.place == FAIR then
    local rank = call('ZRANK', KEY .. 'fair:' .. own, in_turn(task.seq, task.id)) or 0
    return ahead + call('XLEN', task.kind.stream) + rank
  end
  if task.place ~= MAIN then
    return ahead + call('ZCOUNT', KEY .. 'side:' .. own .. '/' .. task.kind.starts, '-inf', before)
  end
  if ahead < AHEAD_MAX then
    ahead = ahead + #call('XRANGE', task.kind.stream, '-', before .. '-0', 'COUNT', AHEAD_MAX - ahead)
  end
  return ahead
end

local lease_until = false
if task.status == RUNNING then
  lease_until = call('ZSCORE', leases_of(task.worker), task.id)
elseif task.status == ASSIGNED then
  lease_until = call('ZSCORE', KEY .. 'inbox:' .. task.worker, task.id)
end
local pauses = KEY .. 'pauses'
local answer = { call('GET', task.key), lease_until, task.status == READY and math.min(count_ahead(), AHEAD_MAX) or 0,
  call('HGET', pauses, 'queue:' .. task.kind.queue), call('HGET', pauses, 'type:' .. task.kind.type) }
for _, worker in ipairs(call('ZRANGE', KEY .. 'lessees', 0, 999)) do
  answer[#answer + 1] = worker
  answer[#answer + 1] = call('ZCARD', leases_of(worker))
end
return reply(answer)
