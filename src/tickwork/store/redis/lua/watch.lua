-- flags: allow-oom
-- parts: lanes records
-- Read a task, and ask for a message on a channel when it ends. Arguments: id, channel. Reply: its value, or nothing.
local task = load(ARGV[3])
if task and not ENDS[task.status] then
  local channels = call('HGET', KEY .. 'watchers', task.id)
  if not channels then
    call('HSET', KEY .. 'watchers', task.id, ARGV[4])
  elseif not string.find('\n' .. channels .. '\n', '\n' .. ARGV[4] .. '\n', 1, true) then
    call('HSET', KEY .. 'watchers', task.id, channels .. '\n' .. ARGV[4])
  end
  if task.watched == 0 then
    task.watched = 1
    save(task)
  end
end
return reply(call('GET', TASK .. ARGV[3]))
