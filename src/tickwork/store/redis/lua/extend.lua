-- flags: allow-oom
-- parts: lanes records pulse
-- Renew leases. Arguments: their length, then id, fence and nonce of each. Reply: for each 'h' (held), 'c' (held, but its
-- handler is asked to stop) or 'l' (lost).
pulse()
local answers, leases, lease_until = {}, {}, whole(now + tonumber(ARGV[3]))
for i = 1, (#ARGV - 3) / 3 do
  local at = 4 + (i - 1) * 3
  local task = load(ARGV[at])
  if task and task.status == RUNNING and task.fence == tonumber(ARGV[at + 1]) and task.nonce == ARGV[at + 2] then
    local held = leases[task.worker] or {}
    held[#held + 1], held[#held + 2], leases[task.worker] = lease_until, task.id, held
    answers[i] = task.cancel == 1 and 'c' or 'h'
  else
    answers[i] = 'l'
  end
end
for worker, held in pairs(leases) do
  in_slices('ZADD', leases_of(worker), held)
  call('ZADD', KEY .. 'lessees', 'LT', lease_until, worker) -- the new end may be earlier than the one before
end
return reply(answers)
