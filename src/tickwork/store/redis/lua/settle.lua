-- flags: allow-oom
-- With several logs: the log of this prefix goes on after a number. Arguments: the number, without that of the log (see
-- `last_number`). Reply: nothing.
if tonumber(ARGV[3]) > tonumber(call('GET', KEY .. 'facts') or 0) then
  call('SET', KEY .. 'facts', ARGV[3])
end
return reply(false)
