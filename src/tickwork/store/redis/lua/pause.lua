-- flags: allow-oom
-- Pause or resume a queue or a type. Arguments: kind, name, 'pause' or 'resume', note.
local field = ARGV[3] .. ':' .. ARGV[4]
if ARGV[5] == 'pause' then
  call('HSET', KEY .. 'pauses', field, whole(now) .. ' ' .. ARGV[6])
  log_fact(ARGV[3] .. '.paused', ARGV[4], '\n', '', 0, 0, ARGV[6])
  return reply(1)
end
if call('HDEL', KEY .. 'pauses', field) == 0 then
  return reply(1)
end
log_fact(ARGV[3] .. '.resumed', ARGV[4], '\n', '', 0, 0, '')
for _, lane in ipairs(call('SMEMBERS', KEY .. 'lanes')) do
  woken[string.match(lane, '^%a+:(.*)$')] = true
end
for _, lane_key in ipairs(call('SMEMBERS', KEY .. 'aside')) do
  woken[string.match(lane_key, '^%a+:%a+:([^/]*)')] = true
end
return reply(1)
