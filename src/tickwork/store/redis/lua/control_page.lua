-- flags: no-writes
-- parts: control
-- Documents of a kind by name, at one moment. Arguments: kind, the name behind which to begin, how many. Reply: name and text of
-- each.
local answer = {}
for _, name in ipairs(call('ZRANGE', CONTROL .. 'names:' .. ARGV[3], '(' .. ARGV[4], '+', 'BYLEX', 'LIMIT', 0, ARGV[5])) do
  local text = call('HGET', CONTROL .. 'doc:' .. ARGV[3], name)
  if text then
    answer[#answer + 1], answer[#answer + 2] = name, text
  end
end
return reply(answer)
