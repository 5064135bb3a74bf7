-- Records that somebody has called the store, and returns until when no lease counts as expired. The rule is that of
-- `rules.pulse`.
local function pulse()
  local pulse_at, hold_until = 0, 0
  local known, held = string.match(call('GET', KEY .. 'pulse') or '', '^(%d+) (%d+)$')
  if known then
    pulse_at, hold_until = tonumber(known), tonumber(held)
  else
    pulse_at = now
  end
  local silence, quiet = now - pulse_at, LEASE_TTL - RENEW_INTERVAL
  if known and silence >= 0 and silence < math.min(1000, math.floor(quiet / 4)) then
    return hold_until
  end
  if silence > quiet or silence < 0 then
    hold_until = now + LEASE_TTL
  end
  if silence < 0 then -- the clock was set back: leases and members keep the time that they had left
    local homes = { 'lessees', 'inboxes', 'workers:online' }
    for _, worker in ipairs(call('ZRANGE', KEY .. 'inboxes', 0, -1)) do
      homes[#homes + 1] = 'inbox:' .. worker
    end
    for _, worker in ipairs(call('ZRANGE', KEY .. 'lessees', 0, -1)) do
      homes[#homes + 1] = 'leases:' .. worker
    end
    for _, home in ipairs(homes) do
      local ends, moved = call('ZRANGE', KEY .. home, 0, -1, 'WITHSCORES'), {}
      for i = 1, #ends, 2 do
        moved[i], moved[i + 1] = whole(tonumber(ends[i + 1]) + silence), ends[i]
      end
      in_slices('ZADD', KEY .. home, moved)
    end
    for _, id in ipairs(call('ZRANGE', KEY .. 'workers:online', 0, -1)) do
      local times, ends = string.match(call('HGET', KEY .. 'workers:times', id) or '', '^(%d+ %d+ )(%d+)$')
      if times then
        call('HSET', KEY .. 'workers:times', id, times .. whole(tonumber(ends) + silence))
      end
    end
    -- There is no list of all locks. They end by a clock to which the time that was set back is added: see `lock.lua`.
    local back = tonumber(call('HGET', KEY .. 'meta', 'clock_back') or 0)
    call('HSET', KEY .. 'meta', 'clock_back', whole(back - silence))
  end
  call('SET', KEY .. 'pulse', whole(now) .. ' ' .. whole(hold_until))
  return hold_until
end
