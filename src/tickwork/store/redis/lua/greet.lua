-- flags: allow-oom
-- layout: any
-- Sent first on every connection. A server that is not the one which wrote the last facts (after a failover or a restart) may
-- have lost some of them. Then the log goes on at a later number, so that no number is given twice. Reply: nothing.
local server = string.match(call('INFO', 'server'), 'run_id:(%w+)') or 'unknown'
if call('EXISTS', KEY .. 'layout') == 1 and call('HGET', KEY .. 'meta', 'server') ~= server then
  call('HSET', KEY .. 'meta', 'server', server)
  if call('DEL', KEY .. 'facts') == 1 then
    last_number()
  end
end
return reply(false)
