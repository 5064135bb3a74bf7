-- flags: allow-oom
-- parts: lanes records homes
-- Once more, by hand: any end -> ready (front), counters reset; the fence only grows. Arguments: id, the only status
-- from which ('' for any end). Reply: the status found, or nothing.
local task = load(ARGV[3])
if not task then
  return reply(false)
end
local found = task.status
if ENDS[found] and (ARGV[4] == '' or ARGV[4] == found) then
  leave(task)
  call('ZREM', KEY .. 'outbox', task.id)
  call('HDEL', KEY .. 'outbox:status', task.id)
  task.attempt, task.losses, task.fence, task.nonce, task.cancel = 0, 0, task.fence + 1, '', 0
  task.started_at, task.finished_at = 0, 0
  local extras = extras_of(task)
  extras[CODE], extras[MESSAGE], extras[RESULT], extras[DURATION] = 0, '', '', -1
  extras[PROGRESS], extras[NOTE] = -1, ''
  task.extras = cmsgpack.pack(extras)
  task.status, task.place = READY, FRONT
  enter(task)
  -- Written anew, since a state that shrinks in place would keep the room of an old result.
  call('SET', task.key, call('GETRANGE', task.key, 0, task.offset - 1) .. packed(task))
  tell_task('task.retried', task, '')
end
return reply(found)
