-- flags: allow-oom
-- parts: lanes records
-- Add tasks to the indexes of lists. Arguments: their ids. Reply: how many there are. Nothing while lists are not indexed.
local count = 0
for i = 3, INDEXED and #ARGV or 2 do
  local task = load(ARGV[i])
  if task and not task.broken then
    to_indexes(task.kind, task.head, task.seq, task.id)
    count = count + 1
  end
end
return reply(count)
