-- flags: allow-oom
-- parts: lanes records homes waiting
-- Dependants in other partitions were resolved, so they are not listed any more. Arguments: upstream, dependant, 1 if the
-- dependant exists; and so on. One that does not may be about to be created: it stays listed for a minute.
local GRACE = 60000
for i = 3, #ARGV, 3 do
  local since = call('ZSCORE', KEY .. 'dependants:' .. ARGV[i], ARGV[i + 1])
  if ARGV[i + 2] == '1' or (since and tonumber(since) <= now - GRACE) then
    unawait(ARGV[i], ARGV[i + 1])
  end
end
return reply(1)
