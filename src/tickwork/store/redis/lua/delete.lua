-- flags: allow-oom
-- parts: lanes records homes waiting ends
-- Remove an ended task. Arguments: id, its mark as it was seen. Reply: nothing when it is gone, else the status of what is
-- there instead: it was retried, or another was submitted.
local task = load(ARGV[3])
if not task then
  return reply(false)
end
if mark_of(task) ~= ARGV[4] or not ENDS[task.status] then
  return reply(task.status)
end
tell_task('task.deleted', task, '')
free_dedup(task)
leave(task)
forget(task)
return reply(false)
