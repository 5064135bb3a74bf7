-- flags: allow-oom
-- parts: lanes records homes waiting
-- All were told. Arguments: ids, each with the fence of its end ('' for any). Those for whom somebody still waits stay, and
-- those that have ended again since.
for i = 3, #ARGV, 2 do
  if call('EXISTS', KEY .. 'dependants:' .. ARGV[i]) == 0 and not moved_on(ARGV[i], ARGV[i + 1]) then
    call('ZREM', KEY .. 'outbox', ARGV[i])
    call('HDEL', KEY .. 'outbox:status', ARGV[i])
  end
end
return reply(1)
