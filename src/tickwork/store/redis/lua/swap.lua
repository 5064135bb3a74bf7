-- flags: allow-oom
-- Replace a schedule if it is still as the caller has read it. Arguments: id, the schedule as read ('' for none), as it is to
-- be stored ('' to remove it), its next tick if it is active ('' for none), then kind and detail of the facts to log. Reply: 1,
-- or 0 when the schedule has changed meanwhile.
local id, seen, new, next_at = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local stored = call('HGET', KEY .. 'schedules', id) or ''
if stored ~= seen then
  return reply(stored == new and 1 or 0) -- equal to the new one: this call is sent again, since its reply was lost
end
if new == '' then
  call('HDEL', KEY .. 'schedules', id)
else
  call('HSET', KEY .. 'schedules', id, new)
end
if next_at == '' then
  call('ZREM', KEY .. 'schedules:next', id)
else
  call('ZADD', KEY .. 'schedules:next', next_at, id)
end
for i = 7, #ARGV, 2 do
  log_fact(ARGV[i], id, '\n', '', 0, 0, ARGV[i + 1])
end
hints['schedules'] = true
return reply(1)
