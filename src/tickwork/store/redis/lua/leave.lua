-- flags: allow-oom
-- parts: members
-- A worker is no member any more. Arguments: id, its node or '', its process if that is known. Reply: 1, or 0 when the member
-- belongs to another node by now.
if ARGV[4] ~= '' and (call('HGET', KEY .. 'workers:nodes', ARGV[3]) or ARGV[4]) ~= ARGV[4] then
  return reply(0)
end
if ARGV[5] then
  call('HDEL', KEY .. 'chances', ARGV[5])
end
if forget_worker(ARGV[3]) == 1 then
  log_fact('worker.left', ARGV[3], '\n', '', 0, 0, '')
end
return reply(1)
