-- flags: allow-oom
-- parts: lanes records homes waiting dedup many
-- Run ended tasks again, by hand: any end -> ready (front lane), blocked or pending, with counters reset; the fence only
-- grows. Arguments: the only status to retry from ('' for any end); 1 if the caller has looked up dependencies (in several
-- partitions) and names only those that have to be waited for; then for each task its id; its mark (see `mark_of`) as the caller
-- saw it; the time for which it holds its dedup key (0: it has none); and how many ids it depends on, with these. Reply for
-- each: the status found, or '=' when it was retried since the caller saw it, perhaps by this very call sent before. A task is
-- left as it is if it depends on one that has failed, or on one that was removed before this task ever ran: the reply then names
-- that one behind the status. It takes its dedup key again, unless another task holds that.
local ONLY, LOOKED = ARGV[3], ARGV[4] == '1'

-- What it has to wait for: ids and, unless the caller has looked them up, the loaded tasks. Or the id of one that will never
-- let it run.
local function upstreams_of(task, after_end, first, last)
  local names, waiting = {}, {}
  for i = first, last do
    local upstream = not LOOKED and load(ARGV[i])
    if LOOKED then
      names[#names + 1] = ARGV[i]
    elseif not upstream then
      if task.started_at == 0 and not after_end then
        return nil, ARGV[i]
      end
    elseif upstream.status ~= SUCCESS and not (after_end and ENDS[upstream.status]) then
      if ENDS[upstream.status] then
        return nil, ARGV[i]
      end
      names[#names + 1], waiting[#waiting + 1] = ARGV[i], upstream
    end
  end
  return names, waiting
end

-- Keeps the last run in the history, unless it is there already: then the task ended while it waited for another attempt.
local function keep_last_run(task)
  local kept = call('LRANGE', KEY .. 'attempts:' .. task.id, -1, -1)[1]
  if task.started_at > 0 and task.attempt > 0 and not (kept and cmsgpack.unpack(kept)[2] == task.started_at) then
    local extras, status = extras_of(task), task.status
    local why = (status == DEAD or status == FAILED) and extras[ERROR] or ''
    remember(task, task.attempt, task.finished_at, ENDS[status], extras[DURATION], why)
  end
end

local function start_again(task, names, depends)
  local before_its_time = depends and task.started_at == 0 and task.due_at > now
  task.attempt, task.losses, task.fence, task.nonce, task.cancel = 0, 0, task.fence + 1, '', 0
  task.started_at, task.finished_at = 0, 0
  local extras = extras_of(task)
  extras[CODE], extras[MESSAGE], extras[RESULT], extras[DURATION] = 0, '', '', -1
  extras[PROGRESS], extras[NOTE], extras[WAITING] = -1, '', names
  task.extras = cmsgpack.pack(extras)
  task.status, task.place = #names > 0 and BLOCKED or before_its_time and PENDING or READY, FRONT
  enter(task)
  -- The whole value is written, since a state that shrinks in place would keep the memory of an old result.
  call('SET', task.key, call('GETRANGE', task.key, 0, task.offset - 1) .. packed(task))
  log_task('task.retried', task, '')
end

local function retry(id, mark, dedup_ttl, first, last)
  local task = load(id)
  if not task then
    return MISSING
  end
  if mark_of(task) ~= mark then
    return '='
  end
  local found = task.status
  local is_left = string.sub(task.head, LABEL_AT, LABEL_AT + #NAMELESS - 1) ~= NAMELESS
  if not ENDS[found] or not is_left or (ONLY ~= '' and ONLY ~= found) then
    return found
  end
  local label = label_of(task.head)
  local names, waiting = upstreams_of(task, label.after_end, first, last)
  if not names then
    return found .. waiting
  end
  if label.dedup ~= '' and (dedup_ttl > 0 or label.unique ~= '') then
    local other = dedup_holder(label.dedup)
    if not other or other == task.id then
      hold_dedup(label.dedup, task.id, dedup_ttl, label.unique)
    end
  end
  leave(task)
  call('ZREM', KEY .. 'outbox', task.id)
  call('HDEL', KEY .. 'outbox:status', task.id)
  call('ZREM', KEY .. 'kept', task.id)
  keep_last_run(task)
  for _, upstream in ipairs(waiting) do
    await_end(upstream, task.id)
  end
  start_again(task, names, LOOKED or last >= first)
  return found
end

local answers, at = {}, 5
while at <= #ARGV do
  local last = at + 3 + tonumber(ARGV[at + 3])
  answers[#answers + 1] = retry(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), at + 4, last)
  at = last + 1
end
return reply_each(answers)
