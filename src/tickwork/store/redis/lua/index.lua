-- flags: allow-oom
-- parts: lanes records
-- Add tasks to the indexes of lists. Arguments: their ids. Reply: how many were not in them. Nothing while lists are not indexed.
local count = 0
for i = 3, INDEXED and #ARGV or 2 do
  local task = load(ARGV[i])
  if task and not task.broken then
    count = count + (call('ZSCORE', KEY .. 'index:all', task.id) and 0 or 1)
    to_indexes(task.kind, task.head, task.seq, task.id)
  end
end
return reply(count)
