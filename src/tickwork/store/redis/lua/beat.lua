-- flags: allow-oom
-- parts: pulse members
-- A worker's heartbeat: become a member or stay one. Arguments: id, node, description (msgpack), for how long, 0 if only a worker
-- that is listed at its address may be a member and its description stays, that address. Reply: the
-- leader (id, term, until, ttl) or nothing, and the order that is kept for it. If a living member of this name belongs to
-- another node, nothing is changed, and its description, times and order follow in the reply.
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
  return reply({ leading, '', known, call('HGET', KEY .. 'workers:times', id),
    call('HGET', KEY .. 'workers:orders', id) or '' })
end
local joins = ARGV[7] ~= '0'
if not joins and (not known or cmsgpack.unpack(known).address ~= ARGV[8]) then
  return reply({ leading, '' })
end
local new = #times ~= 3 or owner ~= node
local expires_at = now + tonumber(ARGV[6])
keep_times(id, owner == node and times[1] or now, now, expires_at)
call('ZADD', KEY .. 'workers:online', whole(expires_at), id)
call('HSET', KEY .. 'workers:nodes', id, node)
local order = ''
if owner == node then
  order = call('HGET', KEY .. 'workers:orders', id) or ''
else
  call('HDEL', KEY .. 'workers:orders', id)
end
if joins then
  call('HSET', KEY .. 'workers', id, ARGV[5])
end
if new then
  log_fact('worker.joined', id, '\n', '', 0, 0, '')
end
return reply({ leading, order })
