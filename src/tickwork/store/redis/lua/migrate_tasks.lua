-- flags: allow-oom
-- layout: any
-- Move tasks from the old prefix to this one, with their log lines and leases. Arguments: the old prefix, then for each task its
-- id, its value as it was read, its new value, the worker that runs it ('' for none), log lines (msgpack). Reply: how many were
-- moved. A task that has changed since is left for the next call.
local before, moved = ARGV[3], 0
for i = 4, #ARGV, 5 do
  local id, worker = ARGV[i], ARGV[i + 3]
  if call('GET', before .. 'task:' .. id) == ARGV[i + 1] then
    call('SET', TASK .. id, ARGV[i + 2])
    local lines = cmsgpack.unpack(ARGV[i + 4])
    if #lines > 0 then
      call('DEL', KEY .. 'lines:' .. id)
      in_slices('RPUSH', KEY .. 'lines:' .. id, lines)
    end
    local lease_until = call('ZSCORE', before .. 'leases', id)
    if lease_until then
      worker = worker ~= '' and worker or '?' -- it cannot be read, and becomes a dead letter when its lease has run out
      call('ZADD', KEY .. 'leases:' .. worker, lease_until, id)
      call('ZADD', KEY .. 'lessees', 'LT', lease_until, worker)
    end
    call('DEL', before .. 'task:' .. id)
    moved = moved + 1
  end
end
return reply(moved)
