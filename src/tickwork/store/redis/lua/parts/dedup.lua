-- The key `dedup:<key>` holds a task's id, and before it the time until which that task holds the dedup key, or a letter: `q`
-- while the task waits to be run, `u` while it has not ended.
local function still_holds(how, id)
  local task = load(id)
  return task and not ENDS[task.status] and (how == 'u' or task.status ~= RUNNING)
end

local function dedup_holder(key)
  local held = DEDUP and call('GET', KEY .. 'dedup:' .. key)
  local how, id = string.match(held or '', '^(%w+) (.*)$')
  local hold_until = tonumber(how)
  if hold_until and hold_until > now or not hold_until and id and still_holds(how, id) then
    return id
  end
end

local function hold_dedup(key, id, ttl, unique)
  if DEDUP and unique ~= '' then
    call('SET', KEY .. 'dedup:' .. key, unique .. ' ' .. id)
  elseif DEDUP then
    call('SET', KEY .. 'dedup:' .. key, whole(now + ttl) .. ' ' .. id, 'PX', whole(ttl + SLACK))
  end
end
