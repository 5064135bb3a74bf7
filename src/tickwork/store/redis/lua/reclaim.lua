-- flags: allow-oom
-- parts: lanes records homes waiting ends pulse members
-- Take back what lost workers held: running -> ready (front), or dead after too many losses, or cancelled. Arguments:
-- limit, why, then workers known to be gone and their nodes ('' for any). Reply: ids taken back, ids of workers that now
-- count as lost, tasks dropped from the dead letters. Leases that ran out are left alone until the hold is over.
local limit, why = tonumber(ARGV[3]), ARGV[4]
local hold_until = pulse()
local gone, some_gone = {}, false
for i = 5, #ARGV, 2 do
  local node = ARGV[i + 1]
  if node == '' or (call('HGET', KEY .. 'workers:nodes', ARGV[i]) or node) == node then
    gone[ARGV[i]], some_gone = true, true
  end
end
local lost = lose_workers(hold_until, gone)
local taken = {}

-- A worker that lives and has let go of a task was cut off: that is no loss.
local function is_alive(worker)
  local expires_at = call('ZSCORE', KEY .. 'workers:online', worker)
  return expires_at and tonumber(expires_at) > now
end

local function expire(task, reason)
  local alive = is_alive(task.worker)
  leave(task)
  task.attempt, task.fence, task.nonce = task.attempt - 1, task.fence + 1, ''
  task.losses = task.losses + (alive and 0 or 1)
  local extras = extras_of(task)
  if task.cancel == 1 then
    cancel(task, extras, extras[MESSAGE], extras[ERROR])
  else
    extras[ERROR] = 'worker ' .. task.worker .. (alive and ' was cut off (' or ' was lost (') .. reason .. ')'
    if not alive and task.losses >= MAX_LOSSES then
      extras[ERROR] = extras[ERROR] .. '; set aside after ' .. task.losses .. ' lost workers'
      die(task, extras)
    else
      task.extras = cmsgpack.pack(extras)
      task.status, task.place = READY, FRONT
      enter(task)
      save(task)
      tell_task('task.lost', task, extras[ERROR])
    end
  end
  taken[#taken + 1] = task.id
end

-- The leases of a worker are those of its last claims; nobody keeps a list, so all are looked at, in bounded steps.
local function take_from_gone()
  local looked = 0
  while #taken < limit do
    local ids = call('ZRANGE', KEY .. 'leases', looked, looked + 99)
    for _, id in ipairs(ids) do
      local task = load(id)
      if task and gone[task.worker] and #taken < limit then
        expire(task, why)
      else
        looked = looked + 1
      end
    end
    if #ids < 100 or looked >= 1000 then
      return
    end
  end
end

if some_gone then
  take_from_gone()
end
if now >= hold_until and #taken < limit then
  for _, id in ipairs(call('ZRANGEBYSCORE', KEY .. 'leases', '-inf', whole(now), 'LIMIT', 0, limit - #taken)) do
    local task = load(id)
    if task and task.status == RUNNING then
      expire(task, 'its lease ran out')
    else
      call('ZREM', KEY .. 'leases', id)
      if task and task.broken then
        bury(task)
      end
    end
  end
end
return reply({ taken, lost, dropped })
