-- flags: allow-oom
-- parts: members
-- Take or renew leadership if it is free or one's own. Arguments: node, ttl. Reply: id, term, until, ttl of who leads.
local node, ttl = ARGV[3], tonumber(ARGV[4])
local held = leader()
if not held or held.till <= now then
  held = { id = node, term = (held and held.term or 0) + 1, till = now + ttl, ttl = ttl }
  tell('leader.elected', node, '\n', '', 0, 0, 'term ' .. whole(held.term))
elseif held.id == node then
  held.till, held.ttl = now + ttl, ttl
else -- the clock may have been set back: nobody's lease is longer than its own length
  held.till = math.min(held.till, now + held.ttl)
end
call('HSET', KEY .. 'schedule:leader', 'id', held.id, 'term', whole(held.term), 'until', whole(held.till), 'ttl',
  whole(held.ttl))
return reply({ held.id, held.term, held.till, held.ttl })
