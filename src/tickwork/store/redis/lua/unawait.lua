-- flags: allow-oom
-- parts: lanes records homes waiting
-- A task of another partition was told. Arguments: upstream, dependant, 1 if there is such a task. One that is not there
-- may be about to be created: its note is kept for a minute.
local GRACE = 60000
local since = call('ZSCORE', KEY .. 'dependants:' .. ARGV[3], ARGV[4])
if ARGV[5] == '1' or (since and tonumber(since) <= now - GRACE) then
  unawait(ARGV[3], ARGV[4])
end
return reply(1)
