-- Who waits for whom: dependants note themselves with a task, and the outbox tells them of its end.
local function to_outbox(task, schedule)
  call('ZADD', KEY .. 'outbox', 'NX', positions(1), task.id)
  call('HSET', KEY .. 'outbox:status', task.id, task.status .. schedule)
  hints['outbox'] = true
end

local function await(upstream, task_id, since)
  call('ZADD', KEY .. 'dependants:' .. upstream, since or 0, task_id)
  call('SADD', KEY .. 'awaited', upstream)
end

local function unawait(upstream, task_id)
  call('ZREM', KEY .. 'dependants:' .. upstream, task_id)
  if call('EXISTS', KEY .. 'dependants:' .. upstream) == 0 then
    call('SREM', KEY .. 'awaited', upstream)
  end
end
