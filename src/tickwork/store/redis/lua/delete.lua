-- flags: allow-oom
-- parts: lanes records homes waiting ends many
-- Remove ended tasks. Arguments: ids, each with its mark (see `mark_of`) as the caller saw it. Reply for each: nothing when the
-- task is gone, else the status of the task that is there now: it was retried, or another of this id was submitted.
local answers = {}
for i = 3, #ARGV, 2 do
  local task = load(ARGV[i])
  if task and mark_of(task) == ARGV[i + 1] and ENDS[task.status] then
    log_task('task.deleted', task, '')
    free_dedup(task)
    leave(task)
    forget(task)
    task = nil
  end
  answers[#answers + 1] = task and task.status or MISSING
end
return reply_each(table.concat(answers))
