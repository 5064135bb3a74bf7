-- flags: allow-oom
-- parts: lanes
-- Put the counter of places right. Arguments: the last place that is taken. Reply: nothing.
positions(1)
if tonumber(call('GET', KEY .. 'position')) < tonumber(ARGV[3]) then
  call('SET', KEY .. 'position', ARGV[3])
end
return reply(false)
