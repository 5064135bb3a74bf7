-- flags: allow-oom
-- parts: lanes records homes waiting ends
-- Remove an ended task. Arguments: id, the only status in which ('' for any end). Reply: the status found, or nothing.
local task = load(ARGV[3])
if not task then
  return reply(false)
end
if ENDS[task.status] and (ARGV[4] == '' or ARGV[4] == task.status) then
  tell_task('task.deleted', task, '')
  free_dedup(task)
  leave(task)
  forget(task)
end
return reply(task.status)
