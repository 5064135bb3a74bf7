-- flags: no-writes
-- Schedules that are due. Arguments: limit. Reply: the time now, milliseconds until the next schedule is due (-1: none), then
-- the schedules as they are stored.
local limit = tonumber(ARGV[3])
local ids = call('ZRANGEBYSCORE', KEY .. 'schedules:next', '-inf', whole(now), 'LIMIT', 0, limit + 1)
local later = -1
if #ids > limit then
  later, ids[#ids] = 0, nil
else
  local first = call('ZRANGEBYSCORE', KEY .. 'schedules:next', '(' .. whole(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  later = first[2] and tonumber(first[2]) - now or -1
end
local answer = { now, later }
for _, id in ipairs(ids) do
  answer[#answer + 1] = call('HGET', KEY .. 'schedules', id)
end
return reply(answer)
