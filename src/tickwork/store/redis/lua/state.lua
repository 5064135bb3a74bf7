-- flags: no-writes
-- parts: lanes records
-- Where a task stands. Arguments: id. Reply: its status, and a mark that another task of that id, or this one after a
-- retry, does not have; nothing when there is none.
local task = load(ARGV[3])
return reply(task and { task.status, mark_of(task) })
