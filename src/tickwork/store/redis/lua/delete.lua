-- flags: allow-oom
-- parts: lanes records homes waiting ends
-- Remove an ended task. Arguments: id, its mark (see `mark_of`) as the caller saw it. Reply: nothing when the task is gone,
-- else the status of the task that is there now: it was retried, or another of this id was submitted.
local task = load(ARGV[3])
if not task then
  return reply(false)
end
if mark_of(task) ~= ARGV[4] or not ENDS[task.status] then
  return reply(task.status)
end
log_task('task.deleted', task, '')
free_dedup(task)
leave(task)
forget(task)
return reply(false)
