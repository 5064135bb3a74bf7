-- flags: allow-oom
-- parts: control
-- Append entries to a journal. Arguments: journal, how many entries to keep (at least 1), then the text of each new one. Reply:
-- the number of the newest entry, 0 if there is none. It is never dropped, so it tells which numbers were given.
local journal, keep = CONTROL .. 'journal:' .. ARGV[3], ARGV[4]
local newest = call('XREVRANGE', journal, '+', '-', 'COUNT', 1)[1]
local last = newest and tonumber(string.match(newest[1], '^%d+')) or 0
for i = 5, #ARGV do
  last = last + 1
  call('XADD', journal, whole(last) .. '-0', 'at', whole(now), 'text', ARGV[i])
end
call('XTRIM', journal, 'MAXLEN', keep)
return reply(last)
