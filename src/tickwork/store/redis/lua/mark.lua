-- flags: allow-oom
-- Replace a mark if it is still as the caller has read it. Arguments: name, the mark as read, as it is to be; each is '' for
-- none, else '=' and the text; then the kind, the subject and the detail of each fact that tells of the change. Reply: 1, or 0
-- when the mark has changed meanwhile.
local name, seen, new = ARGV[3], ARGV[4], ARGV[5]
local stored = call('HGET', KEY .. 'marks', name)
stored = stored and '=' .. stored or ''
if stored == new then
  return reply(1)
end
if stored ~= seen then
  return reply(0)
end
if new == '' then
  call('HDEL', KEY .. 'marks', name)
else
  call('HSET', KEY .. 'marks', name, string.sub(new, 2))
end
for i = 6, #ARGV, 3 do
  log_fact(ARGV[i], ARGV[i + 1], '\n', '', 0, 0, ARGV[i + 2])
end
return reply(1)
