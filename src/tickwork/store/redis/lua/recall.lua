-- flags: allow-oom
-- parts: standing
-- Have a standing claim answered now; it is granted nothing more. Arguments: worker, turn, nonce. Reply: nothing.
local worker, turn, nonce = ARGV[3], ARGV[3] .. '#' .. ARGV[4], ARGV[5]
local answered = string.match(call('HGET', KEY .. 'claims', turn) or '', '^%S*')
if answered ~= nonce and not is_older(nonce, answered) then
  call('HSET', KEY .. 'claims', turn, nonce .. ' ')
end
if call('LLEN', own_wake_list(worker)) == 0 then
  call('RPUSH', own_wake_list(worker), '1')
end
return reply(false)
