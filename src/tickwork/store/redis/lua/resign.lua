-- flags: allow-oom
-- parts: members
-- Give the leadership up. Arguments: node, term. Reply: 1, or 0 when this node did not lead in that term.
local held = leader()
if not held or held.id ~= ARGV[3] or held.term ~= tonumber(ARGV[4]) then
  return reply(0)
end
if held.till ~= 0 then
  call('HSET', KEY .. 'schedule:leader', 'until', '0')
  log_fact('leader.resigned', held.id, '\n', '', 0, 0, 'term ' .. whole(held.term))
end
return reply(1)
