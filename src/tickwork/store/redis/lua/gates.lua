-- flags: allow-oom
-- parts: pulse
-- Gates: limits, breakers and switches. The rules are those of `store/gating.py`. Arguments: what is to be done, and what with
-- (msgpack). Keys: `gate:<name>` is the rule by which the gate was asked last and what it is applied to, `gate-in:<name>` has those
-- inside by the end of their time, `gate-waits:<name>` those who wait by their order; ORDER_MAX is added to that of those who were
-- told a time.
local RESERVED, LOOK_AGAIN, HORIZON, UNUSED, WAKE_MAX, WAKE_GATES = 5000, 1000, 5000, 60000, 1000, 100 -- as in Python
local ALMOST, ORDER_MAX = 1 - 1e-9, 4503599627370496
local act, request = ARGV[3], cmsgpack.unpack(ARGV[4])
local READS = { look = true, opened = true, crowded = true } -- no sign that a worker can reach the store
local held = READS[act] and tonumber(string.match(call('GET', KEY .. 'pulse') or '', '^%d+ (%d+)$') or 0) or pulse()

-- The fields of an entry, in the order in which they are stored.
local FIELDS = { 'rate', 'burst', 'slots', 'limit', 'timeout', 'shut', 'tokens', 'at', 'slot', 'failures', 'open_until', 'probe',
  'until_at' }

local function find(name)
  local stored = call('GET', KEY .. 'gate:' .. name)
  local is_whole, values = pcall(cmsgpack.unpack, stored or '')
  if not stored or not is_whole or type(values) ~= 'table' or #values ~= #FIELDS then
    return nil
  end
  local entry = {}
  for i, field in ipairs(FIELDS) do
    entry[field] = values[i]
  end
  return (entry.until_at == 0 or entry.until_at > now) and entry or nil
end

local function fresh(burst)
  return { rate = 0, burst = 1, slots = 0, limit = 0, timeout = 0, shut = false, tokens = burst, at = now, slot = 0, failures = 0,
    open_until = 0, probe = '', until_at = 0 }
end

local function keep(name, entry)
  local full_in = entry.rate > 0 and (entry.burst - entry.tokens) / entry.rate or 0
  local unused_in = math.ceil(math.max(full_in, entry.slot - now, LEASE_TTL)) + UNUSED
  entry.until_at = (entry.failures > 0 or entry.open_until > 0) and 0 or now + unused_in
  local values = {}
  for i, field in ipairs(FIELDS) do
    values[i] = entry[field]
  end
  local key, packed = KEY .. 'gate:' .. name, cmsgpack.pack(values)
  if entry.until_at > 0 then
    call('SET', key, packed, 'PX', whole(unused_in))
  else
    call('SET', key, packed)
  end
end

local function refill(entry)
  if entry.rate > 0 then
    entry.tokens = math.min(entry.burst, entry.tokens + math.max(now - entry.at, 0) * entry.rate)
  end
  entry.at = now
end

local function waiting_at(name)
  return call('ZCARD', KEY .. 'gate-waits:' .. name)
end

-- Keeps the number of those who wait beside the names of the gates, as negative ones, so that most come first.
local function count_waiting(name)
  local count = waiting_at(name)
  if count > 0 then
    call('ZADD', KEY .. 'gates:waiting', -count, name)
  else
    call('ZREM', KEY .. 'gates:waiting', name)
  end
  return count
end

local function unwait(name, id)
  if call('ZREM', KEY .. 'gate-waits:' .. name, id) == 1 then
    count_waiting(name)
  end
end

-- Lets `wake` look at the gate then, or sooner if that was said before.
local function look_at(name, at)
  if at then
    call('ZADD', KEY .. 'gates:due', 'LT', whole(at), name)
  else
    call('ZREM', KEY .. 'gates:due', name)
  end
end

local function put_inside(name, id, till)
  call('ZADD', KEY .. 'gate-in:' .. name, whole(till), id)
end

local function take_out(name, id)
  call('ZREM', KEY .. 'gate-in:' .. name, id)
end

local function is_inside(name, id)
  return id ~= '' and call('ZSCORE', KEY .. 'gate-in:' .. name, id)
end

-- How a task is inside for which room is kept. No id begins with a space.
local function kept_for(id)
  return ' ' .. id
end

-- How many are inside, and the end of the first one's time, without those who have not renewed.
local function inside_of(name)
  local key = KEY .. 'gate-in:' .. name
  if now >= held then
    for _, id in ipairs(call('ZRANGEBYSCORE', key, '-inf', whole(now))) do
      call('ZREM', key, id)
    end
  end
  for _, id in ipairs(call('ZRANGEBYSCORE', key, '(' .. whole(now + math.max(LEASE_TTL, RESERVED)), '+inf')) do
    put_inside(name, id, now + LEASE_TTL) -- the clock was set back
  end
  return call('ZCARD', key)
end

local function first_end(name)
  return tonumber(call('ZRANGE', KEY .. 'gate-in:' .. name, 0, 0, 'WITHSCORES')[2])
end

local function tell(kind, name, detail)
  log_fact(kind, name, '\n', '', 0, 0, detail)
end

local function close(name, entry)
  entry.failures, entry.open_until, entry.probe = 0, 0, ''
  call('ZREM', KEY .. 'gates:open', name)
  tell('breaker.closed', name, '')
end

local function asked(rule)
  local name, rate, burst = rule[1], rule[2], rule[3]
  local entry = find(name) or fresh(burst)
  refill(entry)
  if entry.rate ~= rate then
    entry.tokens, entry.slot = entry.rate > 0 and entry.tokens or burst, 0
  end
  entry.rate, entry.burst, entry.slots, entry.limit, entry.timeout, entry.shut = rate, burst, rule[4], rule[5], rule[6], rule[7]
  entry.tokens = math.min(entry.tokens, burst)
  if entry.limit == 0 then
    entry.failures = 0
    if entry.open_until > 0 then
      close(name, entry)
      keep(name, entry)
    end
  end
  return entry
end

local function refuses(name, entry, id, cost)
  local inside = inside_of(name)
  if entry.shut then
    return 'shut'
  end
  if entry.open_until > 0 then
    if now < entry.open_until or entry.probe ~= id and is_inside(name, entry.probe) then
      return 'open'
    end
  end
  if is_inside(name, id) then
    return nil
  end
  if entry.slots > 0 and inside - (is_inside(name, kept_for(id)) and 1 or 0) >= entry.slots then
    return 'full'
  end
  return entry.rate > 0 and entry.tokens < math.min(cost, entry.burst) - 1 + ALMOST and 'rate' or nil
end

-- When there may be room for those who wait, though nobody leaves.
local function next_look(name, entry)
  if entry.shut then
    return nil
  end
  if entry.open_until > now then
    return entry.open_until
  end
  if is_inside(name, entry.probe) or entry.slots > 0 and call('ZCARD', KEY .. 'gate-in:' .. name) >= entry.slots then
    return math.max(first_end(name), held)
  end
  return now + LOOK_AGAIN
end

local function refuse(name, entry, id, order, reason, cost)
  local wait = -1
  if reason == 'rate' then
    local ask_at = now + (math.min(cost, entry.burst) - entry.tokens) / entry.rate
    if id == '' or entry.slot <= now + HORIZON then
      if id ~= '' then
        ask_at = math.max(ask_at, entry.slot)
        entry.slot = ask_at + 1 / entry.rate
        order = order + ORDER_MAX
      end
      wait = math.ceil(ask_at - now)
    end
  elseif reason == 'open' and now < entry.open_until then
    wait = entry.open_until - now
  end
  if id ~= '' then
    call('ZADD', KEY .. 'gate-waits:' .. name, whole(order), id)
    look_at(name, next_look(name, entry))
  end
  keep(name, entry)
  return { name, reason, wait, count_waiting(name) }
end

-- It is refused: room that was kept for it is for others, and it waits nowhere else.
local function withdraw(id, rules)
  for _, rule in ipairs(rules) do
    unwait(rule[1], id)
    for _, entered in ipairs({ id, kept_for(id) }) do
      if is_inside(rule[1], entered) then
        take_out(rule[1], entered)
        if waiting_at(rule[1]) > 0 then
          look_at(rule[1], now)
        end
      end
    end
  end
end

local function let_in(name, entry, id, cost)
  local was_inside, probes = is_inside(name, id), entry.open_until > 0
  if entry.rate > 0 and not was_inside then
    entry.tokens = entry.tokens - cost
  end
  if probes and entry.probe ~= id then
    entry.probe = id
    tell('breaker.probed', name, id)
  end
  if id ~= '' then
    unwait(name, id)
    take_out(name, kept_for(id))
    if probes or entry.slots > 0 then
      put_inside(name, id, now + LEASE_TTL)
    elseif was_inside then
      take_out(name, id)
    end
  end
  keep(name, entry)
end

local function enter(id, order, rules)
  local entries = {}
  for i, rule in ipairs(rules) do
    entries[i] = asked(rule)
  end
  for i, rule in ipairs(rules) do
    local reason = refuses(rule[1], entries[i], id, rule[8])
    if reason then
      if id ~= '' then
        withdraw(id, rules)
      end
      return refuse(rule[1], entries[i], id, order, reason, rule[8])
    end
  end
  for i, rule in ipairs(rules) do
    let_in(rule[1], entries[i], id, rule[8])
  end
  return {}
end

local function room(name, entry)
  if entry.shut then
    return 0
  end
  local inside, most = inside_of(name), 2147483648
  if entry.open_until > 0 then
    most = (now < entry.open_until or is_inside(name, entry.probe)) and 0 or 1
  end
  if entry.slots > 0 then
    most = math.min(most, math.max(entry.slots - inside, 0))
  end
  if entry.rate == 0 then
    return most
  end
  local ahead = math.max(now + HORIZON / 2 - math.max(entry.slot, now), 0) * entry.rate
  return math.min(most, math.floor(entry.tokens + ahead + 1 - ALMOST))
end

local function first_waiting(name, from, to, most)
  return most > 0 and call('ZRANGEBYSCORE', KEY .. 'gate-waits:' .. name, from, to, 'LIMIT', 0, whole(most)) or {}
end

-- Adds those who may ask again now to `woken`, each with its gate, no more than `limit` in all. Room is kept for them where it is
-- counted.
local function wake(name, entry, woken, limit)
  refill(entry)
  local waiting, count = waiting_at(name), 0
  limit = limit - #woken / 2
  if waiting > 0 then
    local most = math.min(room(name, entry), limit)
    -- Who was told a time keeps it: who asks before comes to the end of the line, and that time is lost.
    local first = entry.slot <= now and first_waiting(name, whole(ORDER_MAX), '+inf', most) or {}
    for _, id in ipairs(first_waiting(name, '-inf', '(' .. whole(ORDER_MAX), most - #first)) do
      first[#first + 1] = id
    end
    count = #first
    in_slices('ZREM', KEY .. 'gate-waits:' .. name, first)
    for _, id in ipairs(first) do
      woken[#woken + 1] = id
      woken[#woken + 1] = name
      if entry.slots > 0 then
        put_inside(name, kept_for(id), now + RESERVED)
      end
    end
    count_waiting(name)
  end
  if count < waiting then
    local counted = entry.slots > 0 or entry.open_until > 0
    look_at(name, count == limit and not counted and now or next_look(name, entry))
  else
    look_at(name, nil)
  end
  keep(name, entry)
end

local function judge(name, entry, id, verdict)
  local probed = entry.open_until > 0 and entry.probe == id
  if probed then
    entry.probe = ''
  end
  if entry.open_until > 0 and not probed then
    return
  end
  if verdict == 'failed' then
    entry.failures = entry.failures + 1
    if probed or entry.failures >= entry.limit then
      entry.open_until = now + entry.timeout
      call('ZADD', KEY .. 'gates:open', whole(entry.open_until), name)
      tell('breaker.opened', name, whole(entry.failures) .. ' failures in a row')
    end
  elseif verdict == 'ok' then
    entry.failures = 0
    if probed then
      close(name, entry)
    end
  end
end

local function look(name)
  local entry = find(name) or fresh(0)
  refill(entry)
  local inside = 0
  for _, entered in ipairs(call('ZRANGEBYSCORE', KEY .. 'gate-in:' .. name, now < held and '-inf' or '(' .. whole(now), '+inf')) do
    inside = inside + (string.sub(entered, 1, 1) ~= ' ' and 1 or 0)
  end
  return { name, entry.rate > 0 and string.format('%.17g', entry.tokens) or '', inside, waiting_at(name), entry.failures,
    entry.open_until, entry.probe }
end

local answer = {}
if act == 'enter' then
  for i, ask in ipairs(request) do
    answer[i] = enter(ask[1], ask[2], ask[3])
  end
elseif act == 'leave' then
  for _, left in ipairs(request) do
    for _, name in ipairs(left[3]) do
      take_out(name, left[1])
      take_out(name, kept_for(left[1]))
      local entry = find(name)
      if entry then
        if entry.limit > 0 then
          judge(name, entry, left[1], left[2])
        end
        wake(name, entry, answer, WAKE_MAX)
      end
    end
  end
elseif act == 'renew' then
  for _, one in ipairs(request) do
    for _, name in ipairs(one[2]) do
      local entry = find(name)
      if entry and (entry.slots > 0 or entry.probe == one[1]) then
        put_inside(name, one[1], now + LEASE_TTL)
        keep(name, entry)
      end
    end
  end
elseif act == 'wake' then
  for _, name in ipairs(call('ZRANGEBYSCORE', KEY .. 'gates:due', '-inf', whole(now), 'LIMIT', 0, WAKE_GATES)) do
    if #answer / 2 < request[1] then
      look_at(name, nil)
      wake(name, find(name) or fresh(0), answer, request[1])
    end
  end
elseif act == 'reset' then
  local name = request[1]
  local entry = find(name)
  if entry then
    if entry.open_until > 0 then
      close(name, entry)
    end
    entry.shut, entry.failures = false, 0
    keep(name, entry)
  end
  if waiting_at(name) > 0 then
    look_at(name, now)
  end
elseif act == 'look' then
  for i, name in ipairs(request) do
    answer[i] = look(name)
  end
elseif act == 'opened' then
  local names = call('ZRANGE', KEY .. 'gates:open', 0, -1)
  table.sort(names)
  for i, name in ipairs(names) do
    answer[i] = look(name)
  end
else -- crowded
  answer = call('ZRANGE', KEY .. 'gates:waiting', 0, request[1] - 1, 'WITHSCORES')
end
return reply(answer)
