-- The members: workers that send heartbeats. `workers` holds the description that a worker sends, `workers:times` the times
-- "started beat expires" (and a fourth, when it was lost), `workers:online` the times at which they expire, `workers:orders` what some are asked to do.
local function times_of(id)
  local times = {}
  for number in string.gmatch(call('HGET', KEY .. 'workers:times', id) or '', '%d+') do
    times[#times + 1] = tonumber(number)
  end
  return times
end

local function keep_times(id, started_at, beat_at, expires_at, lost_at)
  local times = whole(started_at) .. ' ' .. whole(beat_at) .. ' ' .. whole(expires_at)
  if lost_at then
    times = times .. ' ' .. whole(lost_at)
  end
  call('HSET', KEY .. 'workers:times', id, times)
end

local function leader()
  local found = call('HMGET', KEY .. 'schedule:leader', 'id', 'term', 'until', 'ttl')
  if found[1] and found[2] and found[3] and found[4] then
    return { id = found[1], term = tonumber(found[2]), till = tonumber(found[3]), ttl = tonumber(found[4]) }
  end
end

-- Ends the leadership of a node whose process is known to be gone, so that nobody has to wait for the end of its lease.
local function depose(node)
  local held = leader()
  if held and held.id == node and held.till > now then
    call('HSET', KEY .. 'schedule:leader', 'until', '0')
    log_fact('leader.resigned', node, '\n', '', 0, 0, 'its process is gone')
  end
end

local function lose(id)
  local times = times_of(id)
  call('ZREM', KEY .. 'workers:online', id)
  keep_times(id, times[1] or now, times[2] or now, times[3] or now, now)
  log_fact('worker.lost', id, '\n', '', 0, 0, '')
end

-- Marks workers as lost: those in `gone`, and those that have expired unless expiry is held (see `pulse`). Returns their ids.
local function lose_workers(hold_until, gone)
  local lost = {}
  for id in pairs(gone) do
    if call('ZSCORE', KEY .. 'workers:online', id) then
      lost[#lost + 1] = id
    end
  end
  if now >= hold_until then
    for _, id in ipairs(call('ZRANGEBYSCORE', KEY .. 'workers:online', '-inf', whole(now), 'LIMIT', 0, 100)) do
      if not gone[id] then
        lost[#lost + 1] = id
      end
    end
  end
  table.sort(lost)
  for _, id in ipairs(lost) do
    lose(id)
    if gone[id] then
      depose(call('HGET', KEY .. 'workers:nodes', id))
    end
  end
  return lost
end

local function forget_worker(id)
  call('HDEL', KEY .. 'chances', id, call('HGET', KEY .. 'workers:nodes', id) or id)
  call('ZREM', KEY .. 'workers:online', id)
  call('HDEL', KEY .. 'workers:times', id)
  call('HDEL', KEY .. 'workers:nodes', id)
  call('HDEL', KEY .. 'workers:orders', id)
  call('HDEL', KEY .. 'claims', id .. '#0', id .. '#1', id .. '#2')
  call('DEL', KEY .. 'wake:/' .. id)
  return call('HDEL', KEY .. 'workers', id)
end
