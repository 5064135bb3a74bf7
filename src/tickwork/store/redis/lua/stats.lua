-- flags: no-writes
-- Count tasks, at one moment. Reply: pending, retrying, blocked, running, assigned, then success, failed, dead, cancelled, dropped,
-- then name and number of each lane that is not empty: `<band>:<queue>` for main lanes, the key of front and side lanes.
local answer = {}
for _, home in ipairs({ 'delayed', 'retrying', 'blocked' }) do
  answer[#answer + 1] = call('ZCARD', KEY .. home)
end
local running = 0
for _, worker in ipairs(call('ZRANGE', KEY .. 'lessees', 0, -1)) do
  running = running + call('ZCARD', KEY .. 'leases:' .. worker)
end
answer[#answer + 1] = running
local assigned = 0
for _, worker in ipairs(call('ZRANGE', KEY .. 'inboxes', 0, -1)) do
  assigned = assigned + call('ZCARD', KEY .. 'inbox:' .. worker)
end
answer[#answer + 1] = assigned
for _, status in ipairs({ SUCCESS, FAILED, DEAD, CANCELLED }) do
  answer[#answer + 1] = call('XLEN', KEY .. 'ended:' .. ENDS[status])
end
answer[#answer + 1] = tonumber(call('GET', KEY .. 'dropped') or 0)

local function count(name, number)
  if number > 0 then
    answer[#answer + 1] = name
    answer[#answer + 1] = number
  end
end

for _, lane in ipairs(call('SMEMBERS', KEY .. 'lanes')) do
  count(lane, call('XLEN', KEY .. 'stream:' .. lane))
end
for _, lane_key in ipairs(call('SMEMBERS', KEY .. 'aside')) do
  count(lane_key, call('ZCARD', KEY .. lane_key))
end
return reply(answer)
