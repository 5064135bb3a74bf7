-- flags: no-writes
-- parts: lanes records
-- Ended tasks whose dependants or schedule have not been told. Arguments: limit. Reply: for each id, status + schedule,
-- the fence of its end ('' when it is gone), dependants (at most 1,000; the rest comes when these have been told).
local answer = {}
for _, id in ipairs(call('ZRANGE', KEY .. 'outbox', 0, tonumber(ARGV[3]) - 1)) do
  answer[#answer + 1] = id
  local task = load(id)
  -- Of one whose note was lost, its own status tells all but the schedule.
  answer[#answer + 1] = call('HGET', KEY .. 'outbox:status', id) or task and task.status or CANCELLED
  answer[#answer + 1] = task and ENDS[task.status] and whole(task.fence) or ''
  answer[#answer + 1] = call('ZRANGE', KEY .. 'dependants:' .. id, 0, 999)
end
return reply(answer)
