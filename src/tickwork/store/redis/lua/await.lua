-- parts: lanes records homes waiting
-- A task of another partition depends on this one. Arguments: id, dependant, 1 if any end will do. Reply: 'm'issing,
-- 's'atisfied, or 'w'aits: it is noted, and told through the outbox (at once if this one has ended badly).
local task = load(ARGV[3])
if not task then
  return reply('m')
end
if task.status == SUCCESS or (ARGV[5] == '1' and ENDS[task.status]) then
  return reply('s')
end
await_end(task, ARGV[4], now)
return reply('w')
