-- Who waits for whom: dependants note themselves with a task, and the outbox tells them of its end.
local function await(upstream, task_id, since)
  call('ZADD', KEY .. 'dependants:' .. upstream, since or 0, task_id)
  call('SADD', KEY .. 'awaited', upstream)
end

-- The same for a task that was loaded: it is told to put its end into the outbox.
local function await_end(upstream, task_id, since)
  await(upstream.id, task_id, since)
  if upstream.tell == 0 then
    upstream.tell = 1
    save(upstream)
  end
  if ENDS[upstream.status] then -- it ended badly: the outbox tells, as it would have then
    to_outbox(upstream, label_of(upstream.head).schedule)
  end
end

-- Whether a task was retried since it had ended with a fence ('' for any). Of one that is gone, that was its last end.
local function moved_on(id, fence)
  local task = fence ~= '' and load(id)
  return task and not (ENDS[task.status] and task.fence == tonumber(fence))
end

local function unawait(upstream, task_id)
  call('ZREM', KEY .. 'dependants:' .. upstream, task_id)
  if call('EXISTS', KEY .. 'dependants:' .. upstream) == 0 then
    call('SREM', KEY .. 'awaited', upstream)
  end
end
