-- flags: allow-oom
-- parts: lanes records
-- Write progress and log lines of a run. Arguments: id, fence, nonce, a random number for this call, progress ('' for none),
-- its text, log lines. Reply: 1, or 0 when the lease is lost. A running task has no position in a lane, so that field holds the
-- number of the last note: a call that is sent again writes nothing twice.
local task = load(ARGV[3])
if not task or task.status ~= RUNNING or task.fence ~= tonumber(ARGV[4]) or task.nonce ~= ARGV[5] then
  return reply(0)
end
if task.position == tonumber(ARGV[6]) then
  return reply(1)
end
task.position = tonumber(ARGV[6])
local extras = extras_of(task)
if ARGV[7] ~= '' then
  extras[PROGRESS], extras[NOTE] = tonumber(ARGV[7]), ARGV[8]
end
if #ARGV > 8 then
  local lines = extras[LOG]
  for i = 9, #ARGV do
    lines[#lines + 1] = ARGV[i]
  end
  local kept = {}
  for i = math.max(#lines - LOG_LINES_MAX, 0) + 1, #lines do
    kept[#kept + 1] = lines[i]
  end
  extras[LOG] = kept
end
task.extras = cmsgpack.pack(extras)
save(task)
return reply(1)
