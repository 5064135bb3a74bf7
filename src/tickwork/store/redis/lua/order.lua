-- flags: allow-oom
-- parts: members
-- Keep an order for a member, or take it back. Arguments: id, order or ''. Reply: 1, or 0 when there is no such member or it is
-- lost.
local id, order = ARGV[3], ARGV[4]
if #times_of(id) ~= 3 then
  return reply(0)
end
if (call('HGET', KEY .. 'workers:orders', id) or '') ~= order then
  if order == '' then
    call('HDEL', KEY .. 'workers:orders', id)
  else
    call('HSET', KEY .. 'workers:orders', id, order)
  end
  log_fact('worker.ordered', id, '\n', '', 0, 0, order == '' and 'none' or order)
  call('PUBLISH', CHANNEL .. 'control', id) -- names the worker: others ignore it
end
return reply(1)
