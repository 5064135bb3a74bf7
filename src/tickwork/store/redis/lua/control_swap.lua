-- flags: allow-oom
-- parts: control
-- Replace a document if it is still as the caller has read it. Arguments: kind, name, the document as read, as it is to be; each
-- is '' for none, else '=' and the text; how many of its kind there may be (0: any number). Reply: 1, or 0 when it has changed
-- meanwhile, or is a new one and there are as many. Who lets operators in, and notes what they do, must be able to when Redis is
-- full: it is they who make room.
local name, seen, new, most = ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local documents, names = CONTROL .. 'doc:' .. ARGV[3], CONTROL .. 'names:' .. ARGV[3]
local stored = call('HGET', documents, name)
stored = stored and '=' .. stored or ''
if stored == new then
  return reply(1)
end
if stored ~= seen or (stored == '' and most > 0 and call('ZCARD', names) >= most) then
  return reply(0)
end
if new == '' then
  call('HDEL', documents, name)
  call('ZREM', names, name)
else
  call('HSET', documents, name, string.sub(new, 2))
  call('ZADD', names, 0, name)
end
return reply(1)
