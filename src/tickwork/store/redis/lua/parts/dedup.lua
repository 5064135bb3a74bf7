-- The key `dedup:<key>` holds a time and a task's id: until then, that task holds the dedup key.
local function dedup_holder(key)
  local held = DEDUP and call('GET', KEY .. 'dedup:' .. key)
  local hold_until, id = string.match(held or '', '^(%d+) (.*)$')
  if hold_until and tonumber(hold_until) > now then
    return id
  end
end

local function hold_dedup(key, id, ttl)
  if DEDUP then
    call('SET', KEY .. 'dedup:' .. key, whole(now + ttl) .. ' ' .. id, 'PX', whole(ttl + SLACK))
  end
end
