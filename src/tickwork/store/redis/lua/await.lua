-- parts: lanes records homes waiting
-- A task of another partition depends on this one. Arguments: id, dependant, 1 if any end satisfies it. Reply: 'm' (missing),
-- 's' (satisfied), or 'w' (waits): the dependant is listed, and will be resolved through the outbox, at once if this task has
-- failed already.
local task = load(ARGV[3])
if not task then
  return reply('m')
end
if task.status == SUCCESS or (ARGV[5] == '1' and ENDS[task.status]) then
  return reply('s')
end
await_end(task, ARGV[4], now)
return reply('w')
