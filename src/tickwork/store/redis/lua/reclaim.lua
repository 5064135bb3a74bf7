-- flags: allow-oom
-- parts: lanes records homes waiting ends pulse members
-- Take back the tasks of lost workers: running -> ready (front lane), or dead after too many losses, or cancelled; and assigned
-- tasks whose hold has run out, or whose worker is gone: assigned -> ready (front lane). Arguments:
-- limit, reason, how many workers follow of which the caller knows whether they live, each of them and 1 or 0, then workers known
-- to be gone and their nodes ('' for any). Reply: ids taken back, ids of workers that now count as lost, dead letters that were
-- dropped, and workers whose leases ran out here, but who are listed elsewhere: whether they live is to be given in the next
-- call. Leases that ran out are left alone while expiry is held (see `pulse`).
local LOOK_MAX = 1000 -- workers, and leases, that one call looks at
local limit, why = tonumber(ARGV[3]), ARGV[4]
local hold_until = pulse()
local living, unknown = {}, {}
local gone_at = 6 + 2 * tonumber(ARGV[5])
for i = 6, gone_at - 1, 2 do
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
  local number = task.attempt
  task.attempt, task.fence, task.nonce = task.attempt - 1, task.fence + 1, ''
  task.losses = task.losses + (alive and 0 or 1)
  local extras = extras_of(task)
  if task.cancel == 1 then
    remember(task, number, now, 'lost', -1, '')
    cancel(task, extras, extras[MESSAGE], extras[ERROR])
  else
    extras[ERROR] = 'worker ' .. task.worker .. (alive and ' was cut off (' or ' was lost (') .. reason .. ')'
    if not alive and task.losses >= MAX_LOSSES then
      extras[ERROR] = extras[ERROR] .. '; not run again after ' .. task.losses .. ' lost workers'
      remember(task, number, now, 'lost', -1, extras[ERROR])
      die(task, extras)
    else
      extras[PROGRESS], extras[NOTE] = -1, ''
      task.extras = cmsgpack.pack(extras)
      remember(task, number, now, 'lost', -1, extras[ERROR])
      task.status, task.place = READY, FRONT
      enter(task)
      save(task)
      log_task('task.lost', task, extras[ERROR])
    end
  end
  taken[#taken + 1] = task.id
end

local function sooner(a, b)
  return a.at < b.at or a.at == b.at and a.id < b.id
end

local function add_leases(found, worker, until_at)
  local ends = call('ZRANGEBYSCORE', leases_of(worker), '-inf', until_at, 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #ends, 2 do
    found[#found + 1] = { at = tonumber(ends[i + 1]), id = ends[i], worker = worker }
  end
end

-- The first leases of workers that are gone.
local function find_orphans()
  local found = {}
  for worker in pairs(gone) do
    add_leases(found, worker, '+inf')
  end
  table.sort(found, sooner)
  return found
end

-- The leases that have run out. The score of a worker in `lessees` is no later than the end of its first lease; a worker
-- that has renewed its leases since gets a new one.
local function find_expired()
  local found = {}
  for _, worker in ipairs(call('ZRANGEBYSCORE', KEY .. 'lessees', '-inf', whole(now), 'LIMIT', 0, LOOK_MAX)) do
    local first = call('ZRANGE', leases_of(worker), 0, 0, 'WITHSCORES')[2]
    if not first then
      call('ZREM', KEY .. 'lessees', worker)
    elseif tonumber(first) > now then
      call('ZADD', KEY .. 'lessees', first, worker)
    else
      add_leases(found, worker, whole(now))
    end
    if #found >= LOOK_MAX then
      break
    end
  end
  table.sort(found, sooner)
  return found
end

local function take(found, reason)
  for _, lease in ipairs(found) do
    if #taken == limit then
      return
    end
    local task, worker = load(lease.id), lease.worker
    local is_its_own = task and task.status == RUNNING and task.worker == worker
    if is_its_own and not ALONE and not living[worker] and not gone[worker] then
      unknown[worker] = true
    elseif is_its_own then
      expire(task, reason)
    else
      call('ZREM', leases_of(worker), lease.id)
      if task and task.broken then
        end_unreadable(task)
      end
    end
  end
end

take(find_orphans(), why)
local lost = lose_workers(hold_until, #taken < limit and gone or {})
if now >= hold_until and #taken < limit then
  take(find_expired(), 'its lease ran out')
end

-- Assigned tasks by the ends of their holds. The score of a worker in `inboxes` is no later than the end of its first hold.
local function find_held()
  local found = {}
  local function add(worker, until_at)
    local held = call('ZRANGEBYSCORE', KEY .. 'inbox:' .. worker, '-inf', until_at, 'WITHSCORES', 'LIMIT', 0, limit)
    for i = 1, #held, 2 do
      found[#found + 1] = { at = tonumber(held[i + 1]), id = held[i], worker = worker }
    end
  end
  for worker in pairs(gone) do
    add(worker, '+inf')
  end
  for _, worker in ipairs(call('ZRANGEBYSCORE', KEY .. 'inboxes', '-inf', whole(now), 'LIMIT', 0, LOOK_MAX)) do
    local first = call('ZRANGE', KEY .. 'inbox:' .. worker, 0, 0, 'WITHSCORES')[2]
    if not first then
      call('ZREM', KEY .. 'inboxes', worker)
    elseif tonumber(first) > now then
      call('ZADD', KEY .. 'inboxes', first, worker)
    elseif not gone[worker] then
      add(worker, whole(now))
    end
  end
  table.sort(found, sooner)
  return found
end

for _, held in ipairs(next(unknown) and {} or find_held()) do -- else in the call that tells who lives
  if #taken < limit then
    local task = load(held.id)
    if task and task.status == ASSIGNED and task.worker == held.worker then
      unassign(task)
      taken[#taken + 1] = held.id
    else
      call('ZREM', KEY .. 'inbox:' .. held.worker, held.id)
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
return reply({ taken, lost, dropped, asked })
