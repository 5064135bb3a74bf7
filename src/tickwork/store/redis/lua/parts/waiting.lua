-- Dependencies: `dependants:<id>` lists the tasks that wait for a task. Its end then goes to the outbox.
local function await(upstream, task_id, since)
  call('ZADD', KEY .. 'dependants:' .. upstream, since or 0, task_id)
  call('SADD', KEY .. 'awaited', upstream)
end

-- The same for a task that was loaded, which gets the flag that its end goes to the outbox.
local function await_end(upstream, task_id, since)
  await(upstream.id, task_id, since)
  if upstream.outbox == 0 then
    upstream.outbox = 1
    save(upstream)
  end
  if ENDS[upstream.status] then -- it has failed already: the dependant is resolved through the outbox all the same
    to_outbox(upstream, label_of(upstream.head).schedule)
  end
end

-- Whether a task was retried since the end with that fence ('': any end). A task that was removed was not retried.
local function moved_on(id, fence)
  local task = fence ~= '' and load(id)
  return task and not (ENDS[task.status] and task.fence == tonumber(fence))
end

local function unawait(upstream, ...)
  call('ZREM', KEY .. 'dependants:' .. upstream, ...)
  if call('EXISTS', KEY .. 'dependants:' .. upstream) == 0 then
    call('SREM', KEY .. 'awaited', upstream)
  end
end
