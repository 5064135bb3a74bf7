-- flags: no-writes
-- parts: lanes records many
-- The statuses of tasks. Arguments: ids. Reply: the status of each, and its mark (see `mark_of`).
local answers = {}
for i = 3, #ARGV do
  local task = load(ARGV[i])
  answers[#answers + 1] = task and task.status .. mark_of(task) or MISSING
end
return reply_each(answers)
