-- Tasks as Lua tables: loaded, changed, saved.
local FRESH_SIZE = struct.size(FRESH)
local STATE = FRESH .. 'I4HI7I6I6Bc0Bc0I4c0'
local STATUSES = 'pbraxtsfdc'
local NAMELESS = '?\n?\n1' -- the kind of a task whose type and queue cannot be read

-- A table for a task whose value was cut short or overwritten. The value found becomes its body. Its status is an end already;
-- `end_unreadable` puts it into the home of that status and writes it.
local function unreadable(id, key)
  local value = call('GET', key)
  local label = NAMELESS .. '\n\n\ns\n\n0:'
  local head = struct.pack(LENGTHS, #NAMELESS, #label, #value) .. label .. value
  return {
    id = id, key = key, head = head, kind = kind_of(head, #NAMELESS), offset = #head, small = true, broken = true,
    status = DLQ and DEAD or FAILED, cancel = 0, outbox = 1, watched = 1, place = MAIN, seq = 0, submitted_at = now,
    due_at = now, position = 0, attempt = 0, losses = 0, fence = 0, started_at = 0, finished_at = now, nonce = '',
    worker = '', extras = '',
  }
end

local function task_of(id, key, head, kind, offset, source, at)
  local status, cancel, outbox, watched, place, seq, submitted_at, due_at, position
  local attempt, losses, fence, started_at, finished_at, nonce, worker, extras = 0, 0, 0, 0, 0, '', '', ''
  local is_whole = true
  if #source - at + 1 == FRESH_SIZE then
    status, cancel, outbox, watched, place, seq, submitted_at, due_at, position = struct.unpack(FRESH, source, at)
  else
    is_whole, status, cancel, outbox, watched, place, seq, submitted_at, due_at, position, attempt, losses, fence,
      started_at, finished_at, nonce, worker, extras = pcall(struct.unpack, STATE, source, at)
  end
  if not is_whole or not kind or not string.find(STATUSES, status, 1, true) then
    return unreadable(id, key)
  end
  return {
    id = id, key = key, head = head, kind = kind, offset = offset, status = status, cancel = cancel, outbox = outbox,
    watched = watched, place = place, seq = seq, submitted_at = submitted_at, due_at = due_at, position = position,
    attempt = attempt, losses = losses, fence = fence, started_at = started_at, finished_at = finished_at,
    nonce = nonce, worker = worker, extras = extras, small = #head <= GLANCE,
  }
end

-- From the whole value.
local function read(id, key, value)
  if #value < LABEL_AT then
    return unreadable(id, key)
  end
  local kind, label, body = struct.unpack(LENGTHS, value)
  local offset = LABEL_AT - 1 + label + body
  return task_of(id, key, value, kind_of(value, kind), offset, value, offset + 1)
end

local function load(id)
  local key = TASK .. id
  local head = redis.pcall('GETRANGE', key, 0, GLANCE)
  if head == '' or head.err then -- there is no such key, or it is not a string
    return nil
  end
  if #head <= GLANCE then
    return read(id, key, head)
  end
  local kind, label, body = struct.unpack(LENGTHS, head)
  local offset = LABEL_AT - 1 + label + body
  if label > GLANCE - LABEL_AT then
    head = call('GETRANGE', key, 0, LABEL_AT + label)
  end
  return task_of(id, key, head, kind_of(head, kind), offset, call('GETRANGE', key, offset, -1), 1)
end

-- A text that another task of the same id does not have, nor this task after its next claim or retry.
local function mark_of(task)
  return whole(task.seq) .. '.' .. whole(task.fence)
end

local function packed(task)
  if task.fence == 0 and task.extras == '' and task.worker == '' and task.small then
    return struct.pack(FRESH, task.status, task.cancel, task.outbox, task.watched, task.place, task.seq,
      task.submitted_at, task.due_at, task.position)
  end
  return struct.pack(STATE, task.status, task.cancel, task.outbox, task.watched, task.place, task.seq,
    task.submitted_at, task.due_at, task.position, task.attempt, task.losses, task.fence, task.started_at,
    task.finished_at, #task.nonce, task.nonce, #task.worker, task.worker, #task.extras, task.extras)
end

-- A small task is written whole, so that its string has no spare memory; of a large one only the state is written. Returns
-- the new value (of a large task: as far as it was loaded).
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

-- The same for tasks that nothing else in this call reads: `save_all` writes all small ones with one command.
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

-- The lines of the label behind the kind: nonce of the submit, schedule, flags, workflow, then the length of the key and
-- both keys. The flags say what the task runs after, how long it holds its dedup key, whether it has a deadline, and how long
-- it is kept.
local function label_of(head)
  local kind, size = struct.unpack(LENGTHS, head)
  local rest = string.sub(head, LABEL_AT + kind, LABEL_AT + size - 1)
  local nonce, schedule, after, unique, deadline, retention, workflow, key_size, keys =
    string.match(rest, '^\n([^\n]*)\n([^\n]*)\n([se])([qu]?)(x?)(%d*)\n([^\n]*)\n(%d+):(.*)$')
  if not nonce then
    return { nonce = '', schedule = '', unique = '', workflow = '', key = '', dedup = '' }
  end
  return {
    nonce = nonce, schedule = schedule, after_end = after == 'e', unique = unique, has_deadline = deadline == 'x',
    retention = tonumber(retention), workflow = workflow, key = string.sub(keys, 1, tonumber(key_size)),
    dedup = string.sub(keys, tonumber(key_size) + 1),
  }
end

-- The leases of a worker by their ends. `lessees` lists the workers with leases, by a time before which none of theirs ends.
local function leases_of(worker)
  return KEY .. 'leases:' .. worker
end

-- The fields of the extras: the report of the last run, the last error, progress, and the ids it waits for.
local CODE, MESSAGE, RESULT, DURATION, ERROR, PROGRESS, NOTE, WAITING = 1, 2, 3, 4, 5, 6, 7, 8

local function extras_of(task)
  local extras
  if task.extras ~= '' then
    local is_whole, found = pcall(cmsgpack.unpack, task.extras)
    local is_report = is_whole and type(found) == 'table' and type(found[DURATION]) == 'number'
    if is_report and (#found == DURATION or type(found[WAITING]) == 'table') then
      extras = found
    end
  end
  extras = extras or { 0, '', '', -1 }
  if #extras == DURATION then -- after a success in the first run only the report is stored
    extras[ERROR], extras[PROGRESS], extras[NOTE], extras[WAITING] = '', -1, '', {}
  end
  return extras
end

-- Logs a fact about a task. `duration`: that of the last run in microseconds, if the caller knows it.
local function log_task(kind, task, detail, duration)
  if not duration then
    duration = task.extras == '' and 0 or math.max(extras_of(task)[DURATION], 0)
  end
  log_fact(kind, task.id, task.kind.name, task.worker, task.attempt, duration, detail)
end
