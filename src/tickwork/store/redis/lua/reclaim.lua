-- flags: allow-oom
-- parts: lanes records homes waiting ends pulse members
-- Take back the tasks of lost workers: running -> ready (front lane), or dead after too many losses, or cancelled. Arguments:
-- limit, reason, the score in `leases` to begin at, how many workers follow of which the caller knows whether they live, each of
-- them and 1 or 0, then workers known to be gone and their nodes ('' for any). Reply: ids taken back, ids of workers that now
-- count as lost, dead letters that were dropped, the score to go on at ('' when all leases were looked at), and workers whose
-- leases ran out here, but who are listed elsewhere: whether they live is to be given in the next call. Leases that ran out are
-- left alone while expiry is held (see `pulse`).
local LOOK_MAX = 1000 -- leases that one call looks at for those of workers that are gone
local limit, why = tonumber(ARGV[3]), ARGV[4]
local hold_until = pulse()
local living, unknown = {}, {}
local gone_at = 7 + 2 * tonumber(ARGV[6])
for i = 7, gone_at - 1, 2 do
  living[ARGV[i]] = ARGV[i + 1]
end
local gone = {}
for i = gone_at, #ARGV, 2 do
  local node = ARGV[i + 1]
  if node == '' or (call('HGET', KEY .. 'workers:nodes', ARGV[i]) or node) == node then
    gone[ARGV[i]] = true
  end
end
local taken = {}

-- A worker that is still a member has only lost the lease, since it could not renew it in time. That counts as no loss. The
-- members of a namespace with several partitions are not listed in them.
local function is_alive(worker)
  if not ALONE then
    return living[worker] == '1'
  end
  local expires_at = not gone[worker] and call('ZSCORE', KEY .. 'workers:online', worker)
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
      extras[ERROR] = extras[ERROR] .. '; not run again after ' .. task.losses .. ' lost workers'
      die(task, extras)
    else
      extras[PROGRESS], extras[NOTE] = -1, ''
      task.extras = cmsgpack.pack(extras)
      task.status, task.place = READY, FRONT
      enter(task)
      save(task)
      log_task('task.lost', task, extras[ERROR])
    end
  end
  taken[#taken + 1] = task.id
end

-- Finds the tasks of workers that are gone. There is no list of leases by worker, so all leases are looked at, LOOK_MAX in one
-- call. A call ends between two different scores, so that the next one can go on there: the leases of a worker that is gone
-- keep their scores meanwhile.
local function find_orphans()
  local found, looked, last = {}, 0, nil
  while true do
    local page = call('ZRANGEBYSCORE', KEY .. 'leases', ARGV[5], '+inf', 'WITHSCORES', 'LIMIT', looked, 100)
    for i = 1, #page, 2 do
      if looked >= LOOK_MAX and page[i + 1] ~= last then
        return found, '(' .. last
      end
      looked, last = looked + 1, page[i + 1]
      local task = load(page[i])
      if task and gone[task.worker] then
        found[#found + 1] = task
        if #found == limit then
          return found, last
        end
      end
    end
    if #page < 200 then
      return found, ''
    end
  end
end

local orphans, next_at = {}, ''
if next(gone) then
  orphans, next_at = find_orphans()
end
local lost = lose_workers(hold_until, next_at == '' and gone or {})
for _, task in ipairs(orphans) do
  expire(task, why)
end
if now >= hold_until and #taken < limit then
  for _, id in ipairs(call('ZRANGEBYSCORE', KEY .. 'leases', '-inf', whole(now), 'LIMIT', 0, limit - #taken)) do
    local task = load(id)
    if not ALONE and task and task.status == RUNNING and not living[task.worker] and not gone[task.worker] then
      unknown[task.worker] = true
    elseif task and task.status == RUNNING then
      expire(task, 'its lease ran out')
    else
      call('ZREM', KEY .. 'leases', id)
      if task and task.broken then
        end_unreadable(task)
      end
    end
  end
end
local asked = {}
for worker in pairs(unknown) do
  asked[#asked + 1] = worker
end
return reply({ taken, lost, dropped, next_at, asked })
