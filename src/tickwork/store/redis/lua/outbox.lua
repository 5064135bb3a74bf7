-- flags: no-writes
-- parts: lanes records
-- Ended tasks whose dependants or schedule have not been notified. Arguments: limit. Reply: for each id, status + schedule, the
-- fence of its end ('' when it was removed), dependants (at most 1,000; the rest follows when these have been notified).
local answer = {}
for _, id in ipairs(call('ZRANGE', KEY .. 'outbox', 0, tonumber(ARGV[3]) - 1)) do
  answer[#answer + 1] = id
  local task = load(id)
  -- If the entry in `outbox:status` was lost, the task itself has the status; only the schedule is then unknown.
  answer[#answer + 1] = call('HGET', KEY .. 'outbox:status', id) or task and task.status or CANCELLED
  answer[#answer + 1] = task and ENDS[task.status] and whole(task.fence) or ''
  answer[#answer + 1] = call('ZRANGE', KEY .. 'dependants:' .. id, 0, 999)
end
return reply(answer)
