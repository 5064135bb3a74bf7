-- flags: allow-oom
-- parts: pulse members
-- Join or stay. Arguments: id, node, what it says of itself, for how long. Reply: who leads (id, term, until, ttl) or
-- nothing; when another node has this name and lives, also what that says of itself and its times.
pulse()
local id, node = ARGV[3], ARGV[4]
local times = times_of(id)
local leading = {}
local held = leader()
if held and held.till > now then
  leading = { held.id, held.term, held.till, held.ttl }
end
local known, owner = call('HGET', KEY .. 'workers', id), call('HGET', KEY .. 'workers:nodes', id)
if known and owner ~= node and #times == 3 and times[3] > now then
  return reply({ leading, known, call('HGET', KEY .. 'workers:times', id) })
end
local new = #times ~= 3 or owner ~= node
local expires_at = now + tonumber(ARGV[6])
keep_times(id, owner == node and times[1] or now, now, expires_at)
call('ZADD', KEY .. 'workers:online', whole(expires_at), id)
call('HSET', KEY .. 'workers:nodes', id, node)
call('HSET', KEY .. 'workers', id, ARGV[5])
if new then
  tell('worker.joined', id, '\n', '', 0, 0, '')
end
return reply({ leading })
