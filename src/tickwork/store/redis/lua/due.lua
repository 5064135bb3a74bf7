-- flags: no-writes
-- Schedules that are due. Arguments: limit, and the schedule behind which to look ('' for none). Reply: the time now, milliseconds
-- until the next schedule is due (-1: none), then the schedules as they are stored.
local limit, after = tonumber(ARGV[3]), ARGV[4]
local rank = after ~= '' and call('ZRANK', KEY .. 'schedules:next', after)
local first = rank and rank + 1 or 0
local found = call('ZRANGE', KEY .. 'schedules:next', first, first + limit, 'WITHSCORES')
local answer = { now, -1 }
for i = 1, #found, 2 do
  local at = tonumber(found[i + 1])
  if at > now or i > 2 * limit then
    answer[2] = math.max(at - now, 0)
    break
  end
  answer[#answer + 1] = call('HGET', KEY .. 'schedules', found[i])
end
return reply(answer)
