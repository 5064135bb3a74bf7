-- flags: allow-oom
-- parts: lanes records homes waiting ends many
-- Cancel: blocked, pending, retrying, ready, assigned -> cancelled; running is flagged when forced. Arguments: 1 for force, reason,
-- the only status to cancel from ('' for any), then ids. Reply: the status found of each.
local FORCE, REASON, ONLY = ARGV[3] == '1', ARGV[4], ARGV[5]

-- `prune` finds wake lists by the lanes of their queues. A queue that only had delayed tasks has no lane, so its wake list is
-- removed here.
local function forget_wake_list(queue)
  local lanes = KEY .. 'lanes'
  if call('SISMEMBER', lanes, 'high:' .. queue) + call('SISMEMBER', lanes, 'normal:' .. queue)
    + call('SISMEMBER', lanes, 'low:' .. queue) == 0 then
    call('DEL', KEY .. 'wake:' .. queue)
  end
end

local asked, queues = {}, {}

local function cancel_one(id)
  local task = load(id)
  if not task then
    return MISSING
  end
  local found = task.status
  if ONLY ~= '' and found ~= ONLY then
    return found
  end
  if found == RUNNING and FORCE then
    local extras = extras_of(task)
    task.cancel, extras[MESSAGE] = 1, REASON
    task.extras = cmsgpack.pack(extras)
    save(task)
    log_task('task.cancel_asked', task, REASON)
    asked[task.worker] = true
  elseif found ~= RUNNING and not ENDS[found] then
    leave(task)
    cancel(task, extras_of(task), REASON, REASON)
    queues[task.kind.queue] = true
  end
  return found
end

local answers = {}
reserve(#ARGV - 5)
for i = 6, #ARGV do
  answers[#answers + 1] = cancel_one(ARGV[i])
end
for worker in pairs(asked) do
  call('PUBLISH', CHANNEL .. 'control', worker) -- names the worker: others ignore it, or they would all renew their leases
end
for queue in pairs(queues) do
  forget_wake_list(queue)
end
return reply_each(table.concat(answers))
