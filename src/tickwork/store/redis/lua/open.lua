-- flags: allow-oom
-- layout: any
-- Open a namespace. Arguments: the layout, number of partitions, an epoch, the prefix of the layout before. Reply: the time now,
-- then layout, partitions and epoch as they are stored. The first call decides them; it also sets the first pulse. A namespace
-- of the layout before is left as it is: it has to be migrated first.
local meta, before = KEY .. 'meta', ARGV[6] .. 'meta'
local stored = call('HMGET', before, 'version', 'partitions', 'epoch')
-- What a migration has left there has this version already.
if call('EXISTS', meta) == 0 and call('EXISTS', before) == 1 and stored[1] ~= ARGV[3] then
  return reply({ now, stored[1] or '', stored[2] or '1', stored[3] or '' })
end
call('HSETNX', meta, 'version', ARGV[3])
call('HSETNX', meta, 'partitions', ARGV[4])
call('HSETNX', meta, 'epoch', ARGV[5])
call('HSETNX', meta, 'server', string.match(call('INFO', 'server'), 'run_id:(%w+)') or 'unknown')
if call('HGET', meta, 'version') == ARGV[3] then
  call('SET', KEY .. 'layout', ARGV[3], 'NX')
end
if call('EXISTS', KEY .. 'pulse') == 0 then
  call('SET', KEY .. 'pulse', whole(now) .. ' 0')
end
return reply({ now, call('HGET', meta, 'version'), call('HGET', meta, 'partitions'), call('HGET', meta, 'epoch') })
