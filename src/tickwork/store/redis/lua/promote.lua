-- flags: allow-oom
-- parts: lanes records homes waiting ends claiming
-- Move due tasks to their lanes: pending, retrying -> ready; and cancel tasks that have not started by their deadline: blocked,
-- pending, ready -> cancelled. Arguments: limit. Reply: milliseconds until the next is due, or the next deadline is over, or -1.
local limit = tonumber(ARGV[3])

-- The task, if it has a deadline still: a task that has ever started has none any more.
local function load_waiting(member)
  local task = load(string.sub(member, 12))
  if task and not task.broken and task.fence == 0 and not ENDS[task.status] and label_of(task.head).has_deadline then
    return task
  end
end

local overdue = call('ZRANGEBYSCORE', KEY .. 'deadlines', '-inf', whole(now), 'LIMIT', 0, limit)
for _, member in ipairs(overdue) do
  local task = load_waiting(member)
  if task then
    leave(task)
    cancel(task, extras_of(task), 'it did not start in time', '', 'task.expired')
  end
end
in_slices('ZREM', KEY .. 'deadlines', overdue)

-- When the next deadline is over; entries of tasks that have none any more are removed on the way.
local function next_deadline()
  for _ = 1, PROMOTE_MAX do
    local first = call('ZRANGE', KEY .. 'deadlines', 0, 0, 'WITHSCORES')
    if not first[1] or load_waiting(first[1]) then
      return tonumber(first[2])
    end
    call('ZREM', KEY .. 'deadlines', first[1])
  end
  return now
end

local wait, deadline = promote(limit), next_deadline()
if deadline then
  local left = math.max(deadline - now, 0)
  wait = wait < 0 and left or math.min(wait, left)
end
return reply(wait)
