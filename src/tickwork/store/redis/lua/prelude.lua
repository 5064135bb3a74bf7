-- Every script begins with this. KEYS[1] is the prefix of all keys that it touches, ARGV[1] that of the namespace's
-- channels, ARGV[2] the policy; a script's own arguments begin at ARGV[3]. It ends with `return reply(...)`.
local call = redis.call
local KEY, CHANNEL = KEYS[1], ARGV[1]
local POLICY = cmsgpack.unpack(ARGV[2])
local now = clock()

local PENDING, BLOCKED, READY, RUNNING, RETRYING = 'p', 'b', 'r', 'x', 't'
local SUCCESS, FAILED, DEAD, CANCELLED = 's', 'f', 'd', 'c'
local ENDS = { s = 'success', f = 'failed', d = 'dead', c = 'cancelled' }
local FRONT, SIDE, MAIN = 0, 1, 2
local BANDS = { ['0'] = 'high', ['1'] = 'normal', ['2'] = 'low' }

-- Numbers beyond 2^31 must never pass through tostring.
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
-- knows what they hold. Everything that changes is in the state, at the end, and is written in one piece.
local LENGTHS = '>I2I4'
local STATE = '>c1BBBBI4HI6I6I6I7I6I6I6Bc0Bc0I4c0'
local GLANCE = 1023 -- most tasks are read whole; of a larger one, never the payload
local ROOM = 256 -- behind the state of a larger one, so that it can grow in place: Redis doubles a string that grows

local function task_of(id, head, offset, source, at)
  local status, cancel, tell, watched, place, attempt, losses, seq, submitted_at, due_at, fence, started_at, finished_at,
    position, nonce, worker, extras = struct.unpack(STATE, source, at)
  local type_end = string.find(head, '\n', 7, true)
  local queue_end = string.find(head, '\n', type_end + 1, true)
  return {
    id = id, head = head, offset = offset, status = status, cancel = cancel, tell = tell, watched = watched,
    place = place, attempt = attempt, losses = losses, seq = seq, submitted_at = submitted_at, due_at = due_at,
    fence = fence, started_at = started_at, finished_at = finished_at, position = position, nonce = nonce,
    worker = worker, extras = extras, type = string.sub(head, 7, type_end - 1),
    queue = string.sub(head, type_end + 1, queue_end - 1), band = string.sub(head, queue_end + 1, queue_end + 1),
    name = string.sub(head, 7, queue_end - 1),
  }
end

local function load(id)
  local key = KEY .. 'task:' .. id
  local head = call('GETRANGE', key, 0, GLANCE)
  if head == '' then
    return nil
  end
  local label, body = struct.unpack(LENGTHS, head)
  local offset = 6 + label + body
  if #head <= GLANCE then
    local task = task_of(id, head, offset, head, offset + 1)
    task.small = true
    return task
  end
  if label > GLANCE - 6 then
    head = call('GETRANGE', key, 0, label + 5)
  end
  return task_of(id, head, offset, call('GETRANGE', key, offset, -1), 1)
end

local function packed(task)
  return struct.pack(STATE, task.status, task.cancel, task.tell, task.watched, task.place, task.attempt, task.losses,
    task.seq, task.submitted_at, task.due_at, task.fence, task.started_at, task.finished_at, task.position,
    #task.nonce, task.nonce, #task.worker, task.worker, #task.extras, task.extras)
end

-- A small task is written whole, which takes no more memory than it needs; of a large one only the state.
local function save(task)
  if task.small then
    call('SET', KEY .. 'task:' .. task.id, string.sub(task.head, 1, task.offset) .. packed(task))
  else
    call('SETRANGE', KEY .. 'task:' .. task.id, task.offset, packed(task))
  end
end

-- The lines of the label behind type, queue and band.
local function label_of(task)
  local size = struct.unpack(LENGTHS, task.head)
  local label = string.sub(task.head, 7, 6 + size)
  local _, _, nonce, schedule, after, dedup = string.find(label, '^[^\n]*\n[^\n]*\n%d\n([^\n]*)\n([^\n]*)\n(%a)\n(.*)$')
  return { nonce = nonce, schedule = schedule, after_end = after == 'e', dedup = dedup }
end

-- What few tasks have: the report of the last run, progress, log lines and dependencies.
local CODE, MESSAGE, RESULT, DURATION, ERROR, PROGRESS, NOTE, LOG, WAITING = 1, 2, 3, 4, 5, 6, 7, 8, 9

local function extras_of(task)
  if task.extras == '' then
    return { 0, '', '', -1, '', -1, '', {}, {} }
  end
  return cmsgpack.unpack(task.extras)
end

-- Facts of this step: one entry of the log for all of them.
local facts, told = {}, 0

local function tell(kind, subject, name, worker, attempt, duration, detail)
  if not POLICY.events then
    return
  end
  facts[told + 1], facts[told + 2], facts[told + 3], facts[told + 4] = kind, subject, name, worker
  facts[told + 5], facts[told + 6], facts[told + 7] = attempt, duration, detail
  told = told + 7
end

-- `duration` is that of the last run, where the caller knows it.
local function tell_task(kind, task, detail, duration)
  if not duration then
    duration = task.extras == '' and 0 or math.max(extras_of(task)[DURATION], 0)
  end
  tell(kind, task.id, task.name, task.worker, task.attempt, duration, detail)
end

local woken = {} -- queues in which there is something to look for
local hints = {} -- channels on which somebody may listen
local ended = {} -- channel -> ids of ended tasks that somebody waits for

-- The number of the last fact. Those of several logs are ordered by time: their numbers are hundredths of a
-- millisecond, times the number of logs, so that each log has numbers of its own.
local function last_number()
  if POLICY.alone then
    return call('INCRBY', KEY .. 'facts', told / 7)
  end
  local last = math.max(tonumber(call('GET', KEY .. 'facts') or 0) + told / 7, now * 100)
  call('SET', KEY .. 'facts', whole(last))
  return last * POLICY.logs + POLICY.log
end

local function append_facts()
  local last = last_number()
  local cut, limit = 'MINID', whole(math.max(last - POLICY.events_max + 1, 0))
  if not POLICY.alone then
    cut, limit = 'MAXLEN', POLICY.events_max
  end
  call('XADD', KEY .. 'events', cut, '~', limit, whole(last) .. '-0', 'at', whole(now), 'facts', cmsgpack.pack(facts))
  call('PUBLISH', CHANNEL .. 'events', '')
end

local function reply(answer)
  if told > 0 then
    append_facts()
  end
  for queue in pairs(woken) do
    local key = KEY .. 'wake:' .. queue
    if POLICY.alone and call('LLEN', key) == 0 then
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
