-- What the end of a task brings with it: the outbox, the dedup key, who waits for its result, the dead-letter bound.
local function free_dedup(task)
  local dedup = label_of(task.head).dedup
  if dedup ~= '' then
    local held = call('GET', KEY .. 'dedup:' .. dedup)
    if held and string.sub(held, string.find(held, ' ', 1, true) + 1) == task.id then
      call('DEL', KEY .. 'dedup:' .. dedup)
    end
  end
end

-- A small task is told with its value, so that nobody need come and read it; a large one, or one that is gone, with none.
local function tell_watchers(task, value)
  local channels = call('HGET', KEY .. 'watchers', task.id)
  call('HDEL', KEY .. 'watchers', task.id)
  for channel in string.gmatch(channels or '', '[^\n]+') do
    local news = ended[channel] or {}
    news[#news + 1] = struct.pack('>Bc0I4c0', #task.id, task.id, #value, value)
    ended[channel] = news
  end
end

local function forget(task)
  call('DEL', task.key)
  if task.watched == 1 then
    tell_watchers(task, '')
  end
end

local dropped = {} -- for the log of whoever called

local DROP_MAX = 100 -- dead letters that one call may drop; the rest goes with later ones, and with `prune`

local function bound_dead()
  local dead = KEY .. 'ended:dead'
  while call('XLEN', dead) > DLQ_MAX and #dropped < DROP_MAX do
    local oldest = call('XRANGE', dead, '-', '+', 'COUNT', 1)[1]
    call('XDEL', dead, oldest[1])
    local task = load(oldest[2][2])
    if task then
      call('INCR', KEY .. 'dropped')
      tell_task('task.dropped', task, 'the dead-letter queue is full')
      dropped[#dropped + 1] = task.id .. '\n' .. task.kind.type
      forget(task)
    end
  end
end

-- After `task.status` has become an end and the task is home.
local function settle_end(task)
  if task.tell == 1 then
    local schedule = label_of(task.head).schedule
    if schedule ~= '' or call('EXISTS', KEY .. 'dependants:' .. task.id) == 1 then
      to_outbox(task, schedule)
    end
  end
  if task.status == CANCELLED then
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
  -- Most succeed, and nobody looks for those in the same step.
  local value = status == SUCCESS and save_later(task) or save(task)
  if watched then
    tell_watchers(task, task.small and value or '')
  end
  tell_task(kind, task, detail, duration)
  settle_end(task)
end

local function cancel(task, extras, reason, detail)
  extras[MESSAGE] = reason
  for _, upstream in ipairs(extras[WAITING]) do
    unawait(upstream, task.id)
  end
  extras[WAITING] = {}
  task.extras = cmsgpack.pack(extras)
  finish_as(task, CANCELLED, 'task.cancelled', detail)
end

-- Into the dead-letter queue, or merely failed where there is none.
local function die(task, extras)
  task.extras = cmsgpack.pack(extras)
  if DLQ then
    finish_as(task, DEAD, 'task.died', extras[ERROR])
  else
    finish_as(task, FAILED, 'task.failed', extras[ERROR])
  end
end
