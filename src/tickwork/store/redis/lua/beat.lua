-- flags: allow-oom
-- parts: pulse members
-- Join or stay. Arguments: id, node, what it says of itself, for how long. Reply: who leads (id, term, until, ttl), or nothing.
pulse()
local id = ARGV[3]
local times = times_of(id)
local new = #times == 0 or #times == 4
local expires_at = now + tonumber(ARGV[6])
keep_times(id, times[1] or now, now, expires_at)
call('ZADD', KEY .. 'workers:online', whole(expires_at), id)
call('HSET', KEY .. 'workers:nodes', id, ARGV[4])
call('HSET', KEY .. 'workers', id, ARGV[5])
if new then
  tell('worker.joined', id, '\n', '', 0, 0, '')
end
local held = leader()
if held and held.till > now then
  return reply({ held.id, held.term, held.till, held.ttl })
end
return reply({})
