-- When the store was last in touch, and until when nobody's lease counts as expired: see `rules.pulse`.
local function pulse()
  local pulse_at, hold_until = 0, 0
  local known = call('GET', KEY .. 'pulse')
  if known then
    pulse_at, hold_until = string.match(known, '^(%d+) (%d+)$')
    pulse_at, hold_until = tonumber(pulse_at), tonumber(hold_until)
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
  call('SET', KEY .. 'pulse', whole(now) .. ' ' .. whole(hold_until))
  return hold_until
end
