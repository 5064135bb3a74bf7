-- Each status has one home, the key in which its tasks are listed: `enter` adds a task to the home of its status, `leave`
-- removes it. Neither writes the task itself.

local VIRTUAL_MAX, FORGOTTEN = 140737488355328, 2 -- as in `rules.py`

-- Positions in lanes and ends. A caller that will need many reserves them in one call.
local next_place, last_place = 1, 0

local function reserve(count)
  next_place = positions(count)
  last_place = next_place + count - 1
end

local function position()
  if next_place > last_place then
    return positions(1)
  end
  next_place = next_place + 1
  return next_place - 1
end

-- The key of the front, side or fair lane in which a ready task waits. These lanes are sorted sets, not streams. A side lane is
-- named by what a claimer must be able to start: the kind of its tasks. Lanes whose kind has more than a type are listed once more in
-- `aside:needs`, since a claimer cannot name them.
local function sorted_lane_of(task)
  if task.place == FRONT then
    return 'front:' .. task.kind.lane
  elseif task.place == FAIR then
    return 'fair:' .. task.kind.lane
  end
  return 'side:' .. task.kind.lane .. '/' .. task.kind.starts
end

-- In fair lanes there are ties, which are broken by the order of submits.
local function member_of(task)
  return task.place == FAIR and in_turn(task.seq, task.id) or task.id
end

local function to_sorted_lane(task)
  local lane_key = sorted_lane_of(task)
  call('ZADD', KEY .. lane_key, task.position, member_of(task))
  call('SADD', KEY .. 'aside', lane_key)
  if string.find(lane_key, ' ', 1, true) then
    call('SADD', KEY .. 'aside:needs', lane_key)
  end
  call('SADD', KEY .. 'lanes', task.kind.lane)
end

local function off_sorted_lane(lane_key, member)
  call('ZREM', KEY .. lane_key, member)
  if call('EXISTS', KEY .. lane_key) == 0 then
    call('SREM', KEY .. 'aside', lane_key)
    if string.find(lane_key, ' ', 1, true) then
      call('SREM', KEY .. 'aside:needs', lane_key)
    end
  end
end

-- Fair lanes are in the order of virtual time: see `rules.turn_of`. `virtual` has the time of each such lane, `turns:<lane>` how
-- far each key of it has come. A key that is not ahead of its lane is forgotten, and so is a lane in which nobody waits.
local function to_fair_lane(task)
  local lane = task.kind.lane
  local turns, key = KEY .. 'turns:' .. lane, label_of(task.head).key
  local at = tonumber(call('ZSCORE', KEY .. 'virtual', lane))
  if not at or call('EXISTS', KEY .. 'fair:' .. lane) == 0 then -- nobody waits, so nobody is ahead of others
    at = math.max(at or 0, tonumber(call('ZRANGE', turns, -1, -1, 'WITHSCORES')[2] or 0))
    call('ZADD', KEY .. 'virtual', at, lane)
  end
  local turn = math.min(math.max(at, tonumber(call('ZSCORE', turns, key) or 0)) + task.kind.fair, VIRTUAL_MAX)
  call('ZADD', turns, turn, key)
  task.place, task.position = FAIR, turn
  to_sorted_lane(task)
end

-- Forgets keys of a fair lane, at most `limit`, and at last the lane.
local function forget_turns(lane, at, limit)
  local waits, turns = call('EXISTS', KEY .. 'fair:' .. lane) == 1, KEY .. 'turns:' .. lane
  local keys = call('ZRANGEBYSCORE', turns, '-inf', waits and whole(at) or '+inf', 'LIMIT', 0, limit)
  in_slices('ZREM', turns, keys)
  if not waits and #keys < limit then
    call('ZREM', KEY .. 'virtual', lane)
  end
end

-- Tasks were taken from a fair lane, the last one at this turn.
local function serve(lane, turn, count)
  call('ZADD', KEY .. 'virtual', 'GT', turn, lane)
  forget_turns(lane, turn, FORGOTTEN * count)
end

local function enter(task)
  local status = task.status
  if status == READY then
    if task.place ~= MAIN then
      task.position = position()
      to_sorted_lane(task)
    elseif task.kind.fair then
      to_fair_lane(task)
    else
      task.position = position()
      to_stream(task.kind, task.position, task.id, task.offset)
    end
    woken[task.kind.queue] = true
  elseif status == PENDING then
    task.place = task.held or MAIN
    call('ZADD', KEY .. 'delayed', task.due_at, in_turn(task.seq, task.id))
  elseif status == RETRYING then
    call('ZADD', KEY .. 'retrying', task.due_at, in_turn(task.seq, task.id))
  elseif status == BLOCKED then
    call('ZADD', KEY .. 'blocked', task.seq, task.id)
  elseif ENDS[status] then
    task.position = position()
    call('XADD', KEY .. 'ended:' .. ENDS[status], task.position .. '-0', 'id', task.id)
  end
end

-- Whether a gate did not let it run: it waits for its time, and starts next then.
local LIMITED, SWITCHED_OFF = 4, 6 -- the first and the last of these lanes

local function is_held(task)
  return task.status == PENDING and task.place >= LIMITED and task.place <= SWITCHED_OFF
end

local function leave(task)
  local status = task.status
  if status == READY then
    if task.place == MAIN then
      call('XDEL', task.kind.stream, task.position .. '-0')
    else
      off_sorted_lane(sorted_lane_of(task), member_of(task))
    end
  elseif status == RUNNING then
    call('ZREM', leases_of(task.worker), task.id)
  elseif status == ASSIGNED then
    call('ZREM', KEY .. 'inbox:' .. task.worker, task.id)
    task.worker = ''
  elseif status == PENDING then
    call('ZREM', KEY .. 'delayed', in_turn(task.seq, task.id))
  elseif status == RETRYING then
    call('ZREM', KEY .. 'retrying', in_turn(task.seq, task.id))
  elseif status == BLOCKED then
    call('ZREM', KEY .. 'blocked', task.id)
  else
    call('XDEL', KEY .. 'ended:' .. ENDS[status], task.position .. '-0')
  end
end

-- Puts an assigned task into its front lane again.
local function unassign(task)
  leave(task)
  task.status, task.place = READY, FRONT
  enter(task)
  save(task)
  log_task('task.unassigned', task, '')
end

-- Keeps a run in the history of a task that goes on after it. `duration` is in microseconds, -1 for unknown.
local function remember(task, number, finished_at, ending, duration, why)
  if ATTEMPTS_MAX > 0 then
    local history = KEY .. 'attempts:' .. task.id
    call('RPUSH', history,
      cmsgpack.pack({ number, task.started_at, finished_at, task.worker, ending, duration, why }))
    call('LTRIM', history, -ATTEMPTS_MAX, -1)
  end
end

local function to_outbox(task, schedule)
  call('ZADD', KEY .. 'outbox', 'NX', positions(1), task.id)
  call('HSET', KEY .. 'outbox:status', task.id, task.status .. schedule)
  hints['outbox'] = true
end

-- Makes a dead letter of a task whose value is damaged. The caller has removed it from the home in which it was found.
local function end_unreadable(task)
  local why = 'this version cannot read it: its value in Redis is damaged'
  task.extras = cmsgpack.pack({ 0, '', '', -1, why, -1, '', {} })
  enter(task)
  save(task)
  log_task(task.status == DEAD and 'task.died' or 'task.failed', task, why)
  if call('EXISTS', KEY .. 'dependants:' .. task.id) == 1 then
    to_outbox(task, '')
  end
end
