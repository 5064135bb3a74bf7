-- parts: lanes records homes waiting dedup creating
-- Create the tasks of a schedule's ticks and move the schedule on, if it is still as the caller has read it. Arguments: id; the
-- schedule as read; as it is to be stored if a task is created; as it is to be stored if none is, since another task holds
-- their dedup key; its next tick if it is active ('' for none); the detail of the fact on missed ticks in each of the two cases
-- ('' for none); the task that the fact on firing names; then the tasks as for `submit`. Reply: verdicts as of `submit_with`,
-- or nothing when the schedule has changed meanwhile.
local id, seen, made, skipped, next_at = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local stored = call('HGET', KEY .. 'schedules', id)
if stored == made then -- this call is sent again, since its reply was lost
  return reply({ '' })
end
if stored == skipped then
  return reply({ 'd' })
end
if stored ~= seen then
  return reply(false)
end
local verdicts, holder = create_all(11, true), nil
for _, verdict in ipairs(verdicts) do
  if string.sub(verdict, 1, 1) ~= 'd' then
    holder = nil
    break
  end
  holder = string.sub(verdict, 2)
end
call('HSET', KEY .. 'schedules', id, holder and skipped or made)
if next_at == '' then
  call('ZREM', KEY .. 'schedules:next', id)
else
  call('ZADD', KEY .. 'schedules:next', next_at, id)
end
local missed = holder and ARGV[9] or ARGV[8]
if missed ~= '' then
  log_fact('schedule.missed', id, '\n', '', 0, 0, missed)
end
log_fact(holder and 'schedule.skipped' or 'schedule.fired', id, '\n', '', 0, 0, holder or ARGV[10])
hints['schedules'] = true
return reply(verdicts)
