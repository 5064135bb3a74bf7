-- flags: allow-oom
-- parts: lanes records homes waiting
-- Dependants in other partitions were resolved, so they are not listed any more. Arguments: upstream, dependant, 1 if the
-- dependant exists; and so on. One that does not may be about to be created: it stays listed for a minute. Reply: the upstreams
-- for which one stays.
local GRACE = 60000
local staying = {}
for i = 3, #ARGV, 3 do
  local since = call('ZSCORE', KEY .. 'dependants:' .. ARGV[i], ARGV[i + 1])
  if ARGV[i + 2] == '1' or (since and tonumber(since) <= now - GRACE) then
    unawait(ARGV[i], ARGV[i + 1])
  elseif since then
    staying[#staying + 1] = ARGV[i]
  end
end
return reply(staying)
