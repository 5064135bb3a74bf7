-- flags: allow-oom
-- parts: pulse
-- Take, renew or release a lock. Arguments: 'take', 'extend' or 'release', name, owner, ttl. Reply: for 'take' the fence (0
-- when another owner holds it), else 1 or 0. A lock that has run out is free. Its end is a time by the server's clock plus all
-- the time by which that clock was set back (see `pulse`), so that a lock does not last longer then.
local UNLOCK_KEPT = 60000 -- see `rules.UNLOCK_KEPT`
pulse()
local lock_time = now + tonumber(call('HGET', KEY .. 'meta', 'clock_back') or 0)
local act, key, owner = ARGV[3], KEY .. 'lock:' .. ARGV[4], ARGV[5]
local fence, holder, till
local known = call('GET', key)
if known then
  fence, till, holder = string.match(known, '^(%d+) (%d+) (.*)$')
  if tonumber(till) <= lock_time then
    holder = nil
  end
end
if act == 'release' then
  if known and till == '0' then -- it was released: when, and by which owner
    local at, freed_by = string.match(known, '^%d+ 0 (%d+) (.*)$')
    return reply(freed_by == owner and now < tonumber(at) + UNLOCK_KEPT and 1 or 0)
  end
  if holder ~= owner then
    return reply(0)
  end
  call('SET', key, fence .. ' 0 ' .. whole(now) .. ' ' .. owner, 'PX', UNLOCK_KEPT)
  return reply(1)
end
if holder ~= owner then
  if holder or act == 'extend' then
    return reply(0)
  end
  -- Fences follow the time, as those of tasks do, so that a server that has lost the last ones still gives greater ones.
  fence = whole(math.max(tonumber(call('GET', KEY .. 'fences') or 0) + 1, now * 1000))
  call('SET', KEY .. 'fences', fence)
end
call('SET', key, fence .. ' ' .. whole(lock_time + tonumber(ARGV[6])) .. ' ' .. owner, 'PX',
  whole(tonumber(ARGV[6]) + SLACK))
return reply(act == 'take' and tonumber(fence) or 1)
