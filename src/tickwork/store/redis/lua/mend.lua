-- flags: allow-oom
-- parts: lanes records homes waiting ends
-- Check that a task is in the home of its status, and in no other; correct that if asked to. Arguments: id, 1 to correct, then
-- home and entry (or member) of each place in which it was seen. Reply: what was wrong, a text each.
local id, mending = ARGV[3], ARGV[4] == '1'
local task = load(id)
local found, belongs = {}, {}

local function is_stream(home)
  return string.find(home, '^stream:') or string.find(home, '^ended:')
end

local function member_in(home)
  if task and (home == 'delayed' or home == 'retrying' or string.find(home, '^fair:')) then
    return in_turn(task.seq, task.id)
  end
  return id
end

local function holds(home, entry)
  if is_stream(home) then
    local entries = call('XRANGE', KEY .. home, entry, entry)
    return entries[1] and entries[1][2][2] == id
  end
  return call('ZSCORE', KEY .. home, entry)
end

local function right_homes()
  local status, entry = task.status, task.position .. '-0'
  if status == READY and task.place ~= MAIN then
    belongs[sorted_lane_of(task)] = member_of(task)
  elseif status == READY then
    belongs['stream:' .. task.kind.lane] = entry
  elseif status == RUNNING then
    belongs['leases:' .. task.worker] = id
    belongs['lessees'] = task.worker
  elseif status == ASSIGNED then
    belongs['inbox:' .. task.worker] = id
    belongs['inboxes'] = task.worker
  elseif ENDS[status] then
    belongs['ended:' .. ENDS[status]] = entry
  else
    local home = status == PENDING and 'delayed' or status == RETRYING and 'retrying' or 'blocked'
    belongs[home] = member_in(home)
  end
end

local function take_out(home, entry)
  call(is_stream(home) and 'XDEL' or 'ZREM', KEY .. home, entry)
end

if task and task.broken then -- the caller reports by itself that it cannot be read
  for i = 5, mending and #ARGV or 0, 2 do
    if holds(ARGV[i], ARGV[i + 1]) then
      take_out(ARGV[i], ARGV[i + 1])
    end
  end
  if mending then
    end_unreadable(task)
  end
  return reply(found)
end
if task then
  right_homes()
end
for i = 5, #ARGV, 2 do
  local home, entry = ARGV[i], ARGV[i + 1]
  if belongs[home] ~= entry and holds(home, entry) then
    found[#found + 1] = 'is in ' .. home .. (task and ', where it does not belong' or ', but has no record')
    if mending then
      take_out(home, entry)
    end
  end
end

local missing = false
for home, entry in pairs(belongs) do
  if not holds(home, entry) then
    missing = true
    found[#found + 1] = 'is missing in ' .. home
  end
end
if missing and mending then -- no `leave`: an entry at its position belongs to another task
  if task.status == RUNNING then -- as if its lease had run out; a worker that still runs it may renew it before that
    task.place = FRONT
    call('ZADD', leases_of(task.worker), whole(now), task.id)
    call('ZADD', KEY .. 'lessees', 'LT', whole(now), task.worker)
  else
    if task.status == ASSIGNED then
      leave(task)
      task.status = READY
    end
    if task.status == READY then
      task.place = FRONT
    end
    enter(task)
  end
  save(task)
end
return reply(found)
