-- flags: allow-oom
-- parts: lanes records homes
-- Make a delayed task ready now: pending, retrying -> ready. Arguments: id. Reply: the status found, or nothing.
local task = load(ARGV[3])
if not task then
  return reply(false)
end
local found = task.status
if found == PENDING or found == RETRYING then
  leave(task)
  task.status, task.place = READY, MAIN
  enter(task)
  save(task)
  log_task('task.hastened', task, '')
end
return reply(found)
