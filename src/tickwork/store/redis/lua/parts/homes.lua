-- Each status has one home, the key in which its tasks are listed: `enter` adds a task to the home of its status, `leave`
-- removes it. Neither writes the task itself.

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

-- The key of the front or side lane in which a ready task waits. These lanes are sorted sets, not streams. A side lane is named
-- by what a claimer must be able to start: the kind of its tasks. Lanes whose kind has more than a type are listed once more in
-- `aside:needs`, since a claimer cannot name them.
local function sorted_lane_of(task)
  if task.place == FRONT then
    return 'front:' .. task.kind.lane
  end
  return 'side:' .. task.kind.lane .. '/' .. task.kind.starts
end

local function to_sorted_lane(task)
  local lane_key = sorted_lane_of(task)
  call('ZADD', KEY .. lane_key, task.position, task.id)
  call('SADD', KEY .. 'aside', lane_key)
  if string.find(lane_key, ' ', 1, true) then
    call('SADD', KEY .. 'aside:needs', lane_key)
  end
  call('SADD', KEY .. 'lanes', task.kind.lane)
end

local function off_sorted_lane(lane_key, id)
  call('ZREM', KEY .. lane_key, id)
  if call('EXISTS', KEY .. lane_key) == 0 then
    call('SREM', KEY .. 'aside', lane_key)
    if string.find(lane_key, ' ', 1, true) then
      call('SREM', KEY .. 'aside:needs', lane_key)
    end
  end
end

local function enter(task)
  local status = task.status
  if status == READY then
    task.position = position()
    if task.place == MAIN then
      to_stream(task.kind, task.position, task.id, task.offset)
    else
      to_sorted_lane(task)
    end
    woken[task.kind.queue] = true
  elseif status == PENDING then
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

local function leave(task)
  local status = task.status
  if status == READY then
    if task.place == MAIN then
      call('XDEL', task.kind.stream, task.position .. '-0')
    else
      off_sorted_lane(sorted_lane_of(task), task.id)
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
