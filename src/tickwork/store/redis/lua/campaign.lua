-- flags: allow-oom
-- parts: members
-- Take the leadership if it is free, or renew one's own. Arguments: node, ttl. Reply: id, term, until, ttl of the leader.
local node, ttl = ARGV[3], tonumber(ARGV[4])
local held = leader()
if not held or held.till <= now then
  held = { id = node, term = (held and held.term or 0) + 1, till = now + ttl, ttl = ttl }
  log_fact('leader.elected', node, '\n', '', 0, 0, 'term ' .. whole(held.term))
elseif held.id == node then
  held.till, held.ttl = now + ttl, ttl
else -- the clock may have been set back: no lease has more time left than its own length
  held.till = math.min(held.till, now + held.ttl)
end
call('HSET', KEY .. 'schedule:leader', 'id', held.id, 'term', whole(held.term), 'until', whole(held.till), 'ttl',
  whole(held.ttl))
return reply({ held.id, held.term, held.till, held.ttl })
