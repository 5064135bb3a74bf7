-- flags: no-writes
-- parts: lanes records
-- Ended tasks whose dependants or schedule have not been notified. Arguments: how many at most, and how many dependants of all
-- together; the rest follows when these have been notified. Reply: for each id, status + schedule, the fence of its end (''
-- when it was removed), dependants.
local answer, left = {}, tonumber(ARGV[4])
for _, id in ipairs(call('ZRANGE', KEY .. 'outbox', 0, tonumber(ARGV[3]) - 1)) do
  if left == 0 then
    break
  end
  local dependants = call('ZRANGE', KEY .. 'dependants:' .. id, 0, left - 1)
  left = left - #dependants
  answer[#answer + 1] = id
  local task = load(id)
  -- If the entry in `outbox:status` was lost, the task itself has the status; only the schedule is then unknown.
  answer[#answer + 1] = call('HGET', KEY .. 'outbox:status', id) or task and task.status or CANCELLED
  answer[#answer + 1] = task and ENDS[task.status] and whole(task.fence) or ''
  answer[#answer + 1] = dependants
end
return reply(answer)
