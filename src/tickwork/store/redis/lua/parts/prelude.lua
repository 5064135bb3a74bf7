-- Every script begins with this. KEYS[1] is the prefix of all keys that it touches, ARGV[1] that of the namespace's
-- channels, ARGV[2] the policy; a script's own arguments begin at ARGV[3]. It ends with `return reply(...)`.
local call = redis.call
local KEY, CHANNEL = KEYS[1], ARGV[1]
local TASK = KEY .. 'task:'
local EVENTS, EVENTS_MAX, ALONE, LOGS, LOG_NUMBER, LEASE_TTL, RENEW_INTERVAL, MAX_LOSSES, DLQ, DLQ_MAX, DEDUP, SLACK,
  RETENTION, RETENTION_MAX, LOG_LINES_MAX, ATTEMPTS_MAX = cmsgpack.unpack(ARGV[2])
local now = clock()

local PENDING, BLOCKED, READY, ASSIGNED, RUNNING, RETRYING = 'p', 'b', 'r', 'a', 'x', 't'
local SUCCESS, FAILED, DEAD, CANCELLED = 's', 'f', 'd', 'c'
local ENDS = { s = 'success', f = 'failed', d = 'dead', c = 'cancelled' }
-- The lane of a ready task. Any other number is that of a side lane, and says why the task was parked (`records.py`, LANES).
local FRONT, MAIN, FAIR = 0, 2, 8
local BANDS = { ['0'] = 'high', ['1'] = 'normal', ['2'] = 'low' }

-- A number as text without rounding; `tostring` rounds milliseconds and larger numbers.
local function whole(number)
  return string.format('%.0f', number)
end

-- Runs one command for a list of arguments, in pieces, since a call takes no more than 7,999. The size of a piece is even, so
-- that pairs stay together.
local SLICE = 1000

local function in_slices(command, key, list)
  for first = 1, #list, SLICE do
    call(command, key, unpack(list, first, math.min(first + SLICE - 1, #list)))
  end
end

-- The facts of this call become one entry of the log. Facts that differ only in their subject and duration form a group, in
-- which the rest is written once.
local groups, group, fact_count = {}, {}, 0

local function log_fact(kind, subject, name, worker, attempt, duration, detail)
  if not EVENTS then
    return
  end
  if group[1] ~= kind or group[2] ~= name or group[3] ~= worker or group[4] ~= attempt or group[5] ~= detail then
    group = { kind, name, worker, attempt, detail }
    groups[#groups + 1] = group
  end
  local size = #group
  group[size + 1], group[size + 2] = subject, duration
  fact_count = fact_count + 1
end

local woken = {} -- queues for which an idle worker is to be woken
local hints = {} -- channels on which a wake-up is published
local ended = {} -- channel -> messages about ended tasks, for the process that waits for them

-- Reserves numbers for the facts of this call and returns the last. With one log, numbers count up from the first number of
-- a second, and each second has SPAN numbers. A counter that was lost goes on from the current second, and after all facts
-- that are still in the log, so that no number is given twice. With several logs, the numbers of a second are shared out among
-- them, and each log follows the time, so that facts can be merged. A log that has used up its share goes on ahead of the time.
local SPAN = 1048576

local function last_number()
  if ALONE then
    local last = call('INCRBY', KEY .. 'facts', fact_count)
    if last < SPAN then
      local newest = call('XREVRANGE', KEY .. 'events', '+', '-', 'COUNT', 1)[1]
      local taken = newest and tonumber(string.match(newest[1], '^%d+')) or 0
      last = math.max(math.floor(taken / SPAN) + 2, math.floor(now / 1000)) * SPAN + fact_count
      call('SET', KEY .. 'facts', whole(last))
    end
    return last
  end
  local last = math.max(tonumber(call('GET', KEY .. 'facts') or 0), math.floor(now * SPAN / 1000 / LOGS)) + fact_count
  call('SET', KEY .. 'facts', whole(last))
  return last * LOGS + LOG_NUMBER
end

local function append_facts()
  local last = last_number()
  local cut, limit = 'MINID', whole(math.max(last - EVENTS_MAX + 1, 0))
  if not ALONE or last % SPAN < EVENTS_MAX then -- facts before this second may be among the newest
    cut, limit = 'MAXLEN', EVENTS_MAX
  end
  call('XADD', KEY .. 'events', cut, '~', limit, whole(last) .. '-0', 'at', whole(now), 'facts', cmsgpack.pack(groups))
  call('PUBLISH', CHANNEL .. 'events', '')
end

local function reply(answer)
  if fact_count > 0 then
    append_facts()
  end
  for queue in pairs(woken) do
    local key = KEY .. 'wake:' .. queue
    if ALONE and call('LLEN', key) == 0 then
      call('RPUSH', key, '1')
    end
  end
  for channel in pairs(hints) do
    call('PUBLISH', CHANNEL .. channel, '')
  end
  for channel, messages in pairs(ended) do
    call('PUBLISH', channel, table.concat(messages))
  end
  return answer
end
