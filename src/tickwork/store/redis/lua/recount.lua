-- flags: allow-oom
-- parts: lanes
-- Correct the counter of positions. Arguments: the last position that is in use. Reply: nothing.
positions(1)
if tonumber(call('GET', KEY .. 'position')) < tonumber(ARGV[3]) then
  call('SET', KEY .. 'position', ARGV[3])
end
return reply(false)
