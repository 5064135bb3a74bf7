-- flags: allow-oom
-- parts: lanes records homes waiting
-- A dependant in another partition was resolved, so it is not listed any more. Arguments: upstream, dependant, 1 if the
-- dependant exists. One that does not may be about to be created: it stays listed for a minute.
local GRACE = 60000
local since = call('ZSCORE', KEY .. 'dependants:' .. ARGV[3], ARGV[4])
if ARGV[5] == '1' or (since and tonumber(since) <= now - GRACE) then
  unawait(ARGV[3], ARGV[4])
end
return reply(1)
