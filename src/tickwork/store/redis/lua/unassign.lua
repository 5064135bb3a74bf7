-- flags: allow-oom
-- parts: lanes records homes
-- Take assigned tasks out of the inboxes of workers: assigned -> ready (front lane). Arguments: limit, then workers. Reply: the ids,
-- and the queues to be woken.
local limit, taken, found = tonumber(ARGV[3]), {}, {}
for i = 4, #ARGV do
  local held = call('ZRANGE', KEY .. 'inbox:' .. ARGV[i], 0, limit - 1, 'WITHSCORES')
  for j = 1, #held, 2 do
    found[#found + 1] = { at = tonumber(held[j + 1]), id = held[j], worker = ARGV[i] }
  end
end
table.sort(found, function(a, b)
  return a.at < b.at or a.at == b.at and a.id < b.id
end)
for i = 1, math.min(limit, #found) do
  local task = load(found[i].id)
  if task and task.status == ASSIGNED and task.worker == found[i].worker then
    unassign(task)
    taken[#taken + 1] = task.id
  else
    call('ZREM', KEY .. 'inbox:' .. found[i].worker, found[i].id)
    if task and task.broken then
      end_unreadable(task)
    end
  end
end
local queues = {}
for queue in pairs(woken) do
  queues[#queues + 1] = queue
end
return reply({ taken, queues })
