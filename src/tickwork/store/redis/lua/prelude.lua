-- Every script begins with this. KEYS[1] is the prefix of all keys that it touches, ARGV[1] that of the namespace's
-- channels, ARGV[2] the policy; a script's own arguments begin at ARGV[3]. It ends with `return reply(...)`.
local call = redis.call
local KEY, CHANNEL = KEYS[1], ARGV[1]
local TASK = KEY .. 'task:'
local EVENTS, EVENTS_MAX, ALONE, LOGS, LOG_NUMBER, LEASE_TTL, RENEW_INTERVAL, MAX_LOSSES, DLQ, DLQ_MAX, DEDUP, SLACK,
  RETENTION, RETENTION_MAX, LOG_LINES_MAX = cmsgpack.unpack(ARGV[2])
local now = clock()

local PENDING, BLOCKED, READY, RUNNING, RETRYING = 'p', 'b', 'r', 'x', 't'
local SUCCESS, FAILED, DEAD, CANCELLED = 's', 'f', 'd', 'c'
local ENDS = { s = 'success', f = 'failed', d = 'dead', c = 'cancelled' }
local FRONT, SIDE, MAIN = 0, 1, 2
local BANDS = { ['0'] = 'high', ['1'] = 'normal', ['2'] = 'low' }

-- Numbers of milliseconds and more: tostring would round them.
local function whole(number)
  return string.format('%.0f', number)
end

-- One command for a whole list, in pieces: a call takes no more than 7,999 arguments. Lists of pairs stay in pairs.
local SLICE = 1000

local function in_slices(command, key, list)
  for first = 1, #list, SLICE do
    call(command, key, unpack(list, first, math.min(first + SLICE - 1, #list)))
  end
end

-- A task is one string: lengths, label, body, state. Label and body are what was asked and never change; `records.py`
-- knows what they hold. Everything that changes is in the state, at the end, and is written in one piece; one that was
-- never claimed has the first part of it only.
local LENGTHS = '>I2I2I4' -- of the kind (the label's first lines: type, queue and band), the label, the body
local LABEL_AT = 9
local FRESH = '>c1BBBBI6I6I6I6'
local FRESH_SIZE = struct.size(FRESH)
local STATE = FRESH .. 'I4HI7I6I6Bc0Bc0I4c0'
local GLANCE = 1023 -- most tasks are read whole; of a larger one, never the payload
local ROOM = 256 -- behind the state of a larger one, so that it can grow in place: Redis doubles a string that grows

-- Tasks that come together are mostly of one kind.
local kinds = {}

local function kind_of(head, size)
  local text = string.sub(head, LABEL_AT, LABEL_AT + size - 1)
  local kind = kinds[text]
  if not kind then
    local type, queue, band = string.match(text, '^([^\n]*)\n([^\n]*)\n(%d)$')
    local lane = BANDS[band] .. ':' .. queue
    kind = { type = type, queue = queue, name = type .. '\n' .. queue, lane = lane, stream = KEY .. 'stream:' .. lane }
    kinds[text] = kind
  end
  return kind
end

local function task_of(id, key, head, kind, offset, source, at)
  local status, cancel, tell, watched, place, seq, submitted_at, due_at, position
  local attempt, losses, fence, started_at, finished_at, nonce, worker, extras = 0, 0, 0, 0, 0, '', '', ''
  if #source - at + 1 == FRESH_SIZE then
    status, cancel, tell, watched, place, seq, submitted_at, due_at, position = struct.unpack(FRESH, source, at)
  else
    status, cancel, tell, watched, place, seq, submitted_at, due_at, position, attempt, losses, fence, started_at,
      finished_at, nonce, worker, extras = struct.unpack(STATE, source, at)
  end
  return {
    id = id, key = key, head = head, kind = kind, offset = offset, status = status, cancel = cancel, tell = tell,
    watched = watched, place = place, seq = seq, submitted_at = submitted_at, due_at = due_at, position = position,
    attempt = attempt, losses = losses, fence = fence, started_at = started_at, finished_at = finished_at,
    nonce = nonce, worker = worker, extras = extras, small = #head <= GLANCE,
  }
end

local function load(id)
  local key = TASK .. id
  local head = call('GETRANGE', key, 0, GLANCE)
  if head == '' then
    return nil
  end
  local kind, label, body = struct.unpack(LENGTHS, head)
  local offset = LABEL_AT - 1 + label + body
  if #head <= GLANCE then
    return task_of(id, key, head, kind_of(head, kind), offset, head, offset + 1)
  end
  if label > GLANCE - LABEL_AT then
    head = call('GETRANGE', key, 0, LABEL_AT + label)
  end
  return task_of(id, key, head, kind_of(head, kind), offset, call('GETRANGE', key, offset, -1), 1)
end

local function packed(task)
  if task.fence == 0 and task.extras == '' then
    return struct.pack(FRESH, task.status, task.cancel, task.tell, task.watched, task.place, task.seq,
      task.submitted_at, task.due_at, task.position)
  end
  return struct.pack(STATE, task.status, task.cancel, task.tell, task.watched, task.place, task.seq,
    task.submitted_at, task.due_at, task.position, task.attempt, task.losses, task.fence, task.started_at,
    task.finished_at, #task.nonce, task.nonce, #task.worker, task.worker, #task.extras, task.extras)
end

-- A small task is written whole, which takes no more memory than it needs; of a large one only the state. Answers the
-- new value, of what was loaded.
local function save(task)
  local state = packed(task)
  local value = string.sub(task.head, 1, task.offset) .. state
  if task.small then
    call('SET', task.key, value)
  else
    call('SETRANGE', task.key, task.offset, state)
  end
  return value
end

-- The same for many that nobody looks at in between: one command writes all small ones.
local unsaved = {}

local function save_later(task)
  if not task.small then
    return save(task)
  end
  local value = string.sub(task.head, 1, task.offset) .. packed(task)
  unsaved[#unsaved + 1] = task.key
  unsaved[#unsaved + 1] = value
  return value
end

local function save_all()
  for first = 1, #unsaved, SLICE do
    call('MSET', unpack(unsaved, first, math.min(first + SLICE - 1, #unsaved)))
  end
  unsaved = {}
end

-- The lines of the label behind the kind.
local function label_of(head)
  local kind, size = struct.unpack(LENGTHS, head)
  local rest = string.sub(head, LABEL_AT + kind, LABEL_AT + size - 1)
  local nonce, schedule, after, dedup = string.match(rest, '^\n([^\n]*)\n([^\n]*)\n(%a)\n(.*)$')
  return { nonce = nonce, schedule = schedule, after_end = after == 'e', dedup = dedup }
end

-- What few tasks have: the report of the last run, progress, log lines and dependencies.
local CODE, MESSAGE, RESULT, DURATION, ERROR, PROGRESS, NOTE, LOG, WAITING = 1, 2, 3, 4, 5, 6, 7, 8, 9

local function extras_of(task)
  local extras = task.extras == '' and { 0, '', '', -1 } or cmsgpack.unpack(task.extras)
  if #extras == DURATION then -- a run that succeeded at once reports no more
    extras[ERROR], extras[PROGRESS], extras[NOTE], extras[LOG], extras[WAITING] = '', -1, '', {}, {}
  end
  return extras
end

-- Facts of this step: one entry of the log for all of them. Those that differ only in their subject and its duration
-- share what they have in common.
local groups, group, told = {}, {}, 0

local function tell(kind, subject, name, worker, attempt, duration, detail)
  if not EVENTS then
    return
  end
  if group[1] ~= kind or group[2] ~= name or group[3] ~= worker or group[4] ~= attempt or group[5] ~= detail then
    group = { kind, name, worker, attempt, detail }
    groups[#groups + 1] = group
  end
  local size = #group
  group[size + 1], group[size + 2] = subject, duration
  told = told + 1
end

-- `duration` is that of the last run, where the caller knows it.
local function tell_task(kind, task, detail, duration)
  if not duration then
    duration = task.extras == '' and 0 or math.max(extras_of(task)[DURATION], 0)
  end
  tell(kind, task.id, task.kind.name, task.worker, task.attempt, duration, detail)
end

local woken = {} -- queues in which there is something to look for
local hints = {} -- channels on which somebody may listen
local ended = {} -- channel -> ids of ended tasks that somebody waits for

-- The number of the last fact. Those of several logs are ordered by time: their numbers are hundredths of a
-- millisecond, times the number of logs, so that each log has numbers of its own.
local function last_number()
  if ALONE then
    return call('INCRBY', KEY .. 'facts', told)
  end
  local last = math.max(tonumber(call('GET', KEY .. 'facts') or 0) + told, now * 100)
  call('SET', KEY .. 'facts', whole(last))
  return last * LOGS + LOG_NUMBER
end

local function append_facts()
  local last = last_number()
  local cut, limit = 'MINID', whole(math.max(last - EVENTS_MAX + 1, 0))
  if not ALONE then
    cut, limit = 'MAXLEN', EVENTS_MAX
  end
  call('XADD', KEY .. 'events', cut, '~', limit, whole(last) .. '-0', 'at', whole(now), 'facts', cmsgpack.pack(groups))
  call('PUBLISH', CHANNEL .. 'events', '')
end

local function reply(answer)
  if told > 0 then
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
  for channel, ids in pairs(ended) do
    call('PUBLISH', channel, table.concat(ids, '\n'))
  end
  return answer
end
