-- flags: allow-oom
-- They have been told. Arguments: ids. Those for whom somebody still waits stay.
for i = 3, #ARGV do
  if call('EXISTS', KEY .. 'dependants:' .. ARGV[i]) == 0 then
    call('ZREM', KEY .. 'outbox', ARGV[i])
    call('HDEL', KEY .. 'outbox:status', ARGV[i])
  end
end
return reply(1)
