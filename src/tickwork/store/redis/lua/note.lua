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
if ARGV[7] ~= '' then
  local extras = extras_of(task)
  extras[PROGRESS], extras[NOTE] = tonumber(ARGV[7]), ARGV[8]
  task.extras = cmsgpack.pack(extras)
end
if #ARGV > 8 and LOG_LINES_MAX > 0 then
  local lines, log = {}, KEY .. 'lines:' .. task.id
  for i = math.max(#ARGV - LOG_LINES_MAX + 1, 9), #ARGV do
    lines[#lines + 1] = ARGV[i]
  end
  in_slices('RPUSH', log, lines)
  call('LTRIM', log, -LOG_LINES_MAX, -1)
end
save(task)
return reply(1)
