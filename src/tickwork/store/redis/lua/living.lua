-- flags: no-writes
-- Which of these workers are members now. Arguments: ids. Reply: 1 or 0 for each.
local answer = {}
for i = 3, #ARGV do
  local expires_at = call('ZSCORE', KEY .. 'workers:online', ARGV[i])
  answer[i - 2] = expires_at and tonumber(expires_at) > now and 1 or 0
end
return reply(answer)
