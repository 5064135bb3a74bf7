-- flags: allow-oom
-- parts: lanes records homes many
-- Make delayed tasks ready now: pending, retrying -> ready. Arguments: the only status to move ('' for both), 1 to move
-- only those that wait at a gate, then ids. Reply: the status found of each.
local ONLY, HELD = ARGV[3], ARGV[4] == '1'
local answers = {}
reserve(#ARGV - 4)
for i = 5, #ARGV do
  local task = load(ARGV[i])
  answers[#answers + 1] = task and task.status or MISSING
  if task and (task.status == PENDING or task.status == RETRYING) and (ONLY == '' or task.status == ONLY)
    and (is_held(task) or not HELD) then
    leave(task)
    task.status, task.place = READY, is_held(task) and FRONT or MAIN
    enter(task)
    save(task)
    log_task('task.hastened', task, '')
  end
end
return reply_each(table.concat(answers))
