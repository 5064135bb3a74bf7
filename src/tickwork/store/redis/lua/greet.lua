-- flags: allow-oom
-- The first words to a server on every connection. One that is not where the last facts were told (after a failover or a
-- restart) may have forgotten some of them: so the log leaves out their numbers. Reply: nothing.
local server = string.match(call('INFO', 'server'), 'run_id:(%w+)') or 'unknown'
if call('HGET', KEY .. 'meta', 'server') ~= server then
  call('HSET', KEY .. 'meta', 'server', server)
  if call('DEL', KEY .. 'facts') == 1 then
    last_number()
  end
end
return reply(false)
