-- flags: allow-oom
-- Open a namespace. Arguments: the layout's version, number of partitions, an epoch. Reply: the time now, version,
-- partitions and epoch as they are stored. The first call decides them; it also sets the first pulse.
call('HSETNX', KEY .. 'meta', 'version', ARGV[3])
call('HSETNX', KEY .. 'meta', 'partitions', ARGV[4])
call('HSETNX', KEY .. 'meta', 'epoch', ARGV[5])
if call('EXISTS', KEY .. 'pulse') == 0 then
  call('SET', KEY .. 'pulse', whole(now) .. ' 0')
end
return reply({ now, call('HGET', KEY .. 'meta', 'version'), call('HGET', KEY .. 'meta', 'partitions'),
  call('HGET', KEY .. 'meta', 'epoch') })
