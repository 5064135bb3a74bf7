-- flags: allow-oom
-- parts: lanes records pulse
-- Renew leases. Arguments: their length, then id, fence and nonce of each. Reply: for each 'h' (held), 'c' (held, but its
-- handler is asked to stop) or 'l' (lost).
pulse()
local answers, leases = {}, {}
for i = 1, (#ARGV - 3) / 3 do
  local at = 4 + (i - 1) * 3
  local task = load(ARGV[at])
  if task and task.status == RUNNING and task.fence == tonumber(ARGV[at + 1]) and task.nonce == ARGV[at + 2] then
    leases[#leases + 1] = whole(now + tonumber(ARGV[3]))
    leases[#leases + 1] = task.id
    answers[i] = task.cancel == 1 and 'c' or 'h'
  else
    answers[i] = 'l'
  end
end
in_slices('ZADD', KEY .. 'leases', leases)
return reply(answers)
