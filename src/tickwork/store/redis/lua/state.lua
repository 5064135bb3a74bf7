-- flags: no-writes
-- parts: lanes records
-- The status of a task. Arguments: id. Reply: its status and its mark (see `mark_of`); nothing when there is no such task.
local task = load(ARGV[3])
return reply(task and { task.status, mark_of(task) })
