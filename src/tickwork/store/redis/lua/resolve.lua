-- flags: allow-oom
-- parts: lanes records homes waiting ends many
-- Dependencies have ended: blocked -> ready or pending (if it was the last one), or cancelled. Arguments: id, upstream, 1 if
-- the upstream has succeeded, the fence of that end ('' for any); and so on. Reply for each: 1; 0 when the task does not wait
-- for it, or when the upstream was retried since; nothing when there is no such task.
-- What each of many would write by itself is written together, at the end or when the upstream changes: nothing in this call
-- reads it before.
local tasks, changed, unblocked = {}, {}, {}
local waits = {} -- by id: the extras of a blocked task, the set of those that it waits for, and how many they are
local retried = {} -- by upstream and fence: nothing in this call retries or claims one
local told, dependants = '', {} -- the last upstream, and those that do not wait for it any more

local function is_retried(upstream, fence)
  local key = fence .. upstream
  if retried[key] == nil then
    retried[key] = moved_on(upstream, fence) or false
  end
  return retried[key]
end

local function strike()
  if #dependants > 0 then
    unawait(told, unpack(dependants))
    dependants = {}
  end
end

local function waits_of(task)
  local wait = waits[task.id]
  if not wait then
    wait = { extras = extras_of(task), left = {}, count = 0 }
    for _, upstream in ipairs(wait.extras[WAITING]) do
      wait.left[upstream], wait.count = true, wait.count + 1
    end
    waits[task.id] = wait
  end
  return wait
end

local function still_waiting(wait)
  local left = {}
  for _, upstream in ipairs(wait.extras[WAITING]) do
    if wait.left[upstream] then
      left[#left + 1] = upstream
    end
  end
  return left
end

local function resolve(id, upstream, ok, fence)
  local task = tasks[id] or load(id)
  tasks[id] = task
  if is_retried(upstream, fence) then
    return task and '0' or MISSING
  end
  if upstream ~= told then
    strike()
    told = upstream
  end
  -- Also where it does not wait any more, or the outbox entry would stay for ever. With several partitions, one that is not there
  -- may be about to be created: `unawait` knows for how long it stays listed.
  if task or ALONE then
    dependants[#dependants + 1] = id
  end
  local wait = task and task.status == BLOCKED and waits_of(task)
  if not wait or not wait.left[upstream] then
    return task and '0' or MISSING
  end
  wait.left[upstream], wait.count = nil, wait.count - 1
  if not ok and not label_of(task.head).after_end then
    strike()
    leave(task)
    wait.extras[WAITING], changed[id] = still_waiting(wait), nil
    cancel(task, wait.extras, 'task ' .. upstream .. ', on which it depends, did not succeed', upstream)
    return '1'
  end
  if wait.count == 0 then
    unblocked[#unblocked + 1] = id
    task.status, task.place = task.due_at > now and PENDING or READY, MAIN
    enter(task)
  end
  changed[id] = task
  log_task('task.resolved', task, upstream, math.max(wait.extras[DURATION], 0))
  return '1'
end

local answers = {}
reserve((#ARGV - 2) / 4)
for i = 3, #ARGV, 4 do
  answers[#answers + 1] = resolve(ARGV[i], ARGV[i + 1], ARGV[i + 2] == '1', ARGV[i + 3])
end
strike()
in_slices('ZREM', KEY .. 'blocked', unblocked)
for id, task in pairs(changed) do
  local extras = waits[id].extras
  extras[WAITING] = still_waiting(waits[id])
  task.extras = cmsgpack.pack(extras)
  save_later(task)
end
save_all()
return reply_each(table.concat(answers))
