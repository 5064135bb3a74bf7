-- What happens when a task ends: an entry in the outbox, messages to those who wait for its result, freeing the dedup key
-- of a cancelled or unique task, its own retention, and the bound on dead letters. The flag `outbox` of a task says that there
-- may be something to do beside the usual.
local function free_dedup(task)
  local dedup = label_of(task.head).dedup
  if dedup ~= '' then
    if string.match(call('GET', KEY .. 'dedup:' .. dedup) or '', '^%w+ (.*)$') == task.id then
      call('DEL', KEY .. 'dedup:' .. dedup)
    end
  end
end

-- Prepares messages to the processes that wait for the task's result. The message about a small task carries its value, so
-- that they need not read it; `value` is empty for a large task, or for one that was removed.
local function notify_watchers(task, value)
  local channels = call('HGET', KEY .. 'watchers', task.id)
  call('HDEL', KEY .. 'watchers', task.id)
  for channel in string.gmatch(channels or '', '[^\n]+') do
    local messages = ended[channel] or {}
    messages[#messages + 1] = struct.pack('>Bc0I4c0', #task.id, task.id, #value, value)
    ended[channel] = messages
  end
end

-- Removes a task, and what is kept beside it.
local function forget(task)
  call('DEL', task.key, KEY .. 'lines:' .. task.id, KEY .. 'attempts:' .. task.id)
  if task.outbox == 1 then
    call('ZREM', KEY .. 'kept', task.id)
  end
  if INDEXED then
    for _, name in ipairs(indexes_of(task.kind, task.head)) do
      if call('ZREM', KEY .. name, task.id) == 1 and call('EXISTS', KEY .. name) == 0 then
        call('SREM', KEY .. 'indexes', name)
      end
    end
  end
  if task.watched == 1 then
    notify_watchers(task, '')
  end
end

local dropped = {} -- dead letters that were dropped; the caller logs them

local DROP_MAX = 100 -- dead letters that one call drops at most; later calls, and `prune`, drop the rest

local function bound_dead()
  local dead = KEY .. 'ended:dead'
  while call('XLEN', dead) > DLQ_MAX and #dropped < DROP_MAX do
    local oldest = call('XRANGE', dead, '-', '+', 'COUNT', 1)[1]
    call('XDEL', dead, oldest[1])
    local task = load(oldest[2][2])
    if task then
      call('INCR', KEY .. 'dropped')
      log_task('task.dropped', task, 'the dead-letter queue is full')
      dropped[#dropped + 1] = task.id .. '\n' .. task.kind.type
      forget(task)
    end
  end
end

-- To be called after `task.status` is an end and the task is in the home of that status.
local function settle_end(task)
  local is_unique = false
  if task.outbox == 1 then
    local label = label_of(task.head)
    is_unique = label.unique ~= ''
    if label.retention then
      call('ZADD', KEY .. 'kept', whole(now + label.retention), task.id)
    end
    if label.schedule ~= '' or call('EXISTS', KEY .. 'dependants:' .. task.id) == 1 then
      to_outbox(task, label.schedule)
    end
  end
  if is_unique or task.status == CANCELLED then
    free_dedup(task)
  end
  if task.status == DEAD then
    bound_dead()
  end
end

local function finish_as(task, status, kind, detail, duration)
  task.status, task.finished_at, task.cancel = status, now, 0
  local watched = task.watched == 1
  task.watched = 0
  enter(task)
  -- Most tasks succeed, and nothing else in this call reads them, so they may be written together at the end.
  local value = status == SUCCESS and save_later(task) or save(task)
  if watched then
    notify_watchers(task, task.small and value or '')
  end
  log_task(kind, task, detail, duration)
  settle_end(task)
end

local function cancel(task, extras, reason, detail, kind)
  extras[MESSAGE] = reason
  for _, upstream in ipairs(extras[WAITING]) do
    unawait(upstream, task.id)
  end
  extras[WAITING] = {}
  task.extras = cmsgpack.pack(extras)
  if task.fence == 0 then -- it has never started, so it may have a deadline
    call('ZREM', KEY .. 'deadlines', in_turn(task.seq, task.id))
  end
  finish_as(task, CANCELLED, kind or 'task.cancelled', detail)
end

-- Ends a task for good: dead, or failed if dead letters are off.
local function die(task, extras)
  task.extras = cmsgpack.pack(extras)
  if DLQ then
    finish_as(task, DEAD, 'task.died', extras[ERROR])
  else
    finish_as(task, FAILED, 'task.failed', extras[ERROR])
  end
end
