-- flags: allow-oom
-- parts: lanes records homes waiting
-- Remove entries from the outbox whose dependants and schedules have been notified. Arguments: ids, each with the fence of its
-- end ('' for any). An entry stays while a task still waits for it, or if the task was retried since that end.
for i = 3, #ARGV, 2 do
  if call('EXISTS', KEY .. 'dependants:' .. ARGV[i]) == 0 and not moved_on(ARGV[i], ARGV[i + 1]) then
    call('ZREM', KEY .. 'outbox', ARGV[i])
    call('HDEL', KEY .. 'outbox:status', ARGV[i])
  end
end
return reply(1)
