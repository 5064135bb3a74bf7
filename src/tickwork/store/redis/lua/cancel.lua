-- flags: allow-oom
-- parts: lanes records homes waiting ends
-- Cancel: blocked, pending, retrying, ready -> cancelled; running is flagged when forced. Arguments: id, 1 for force,
-- reason. Reply: the status found, or nothing.
local task = load(ARGV[3])
if not task then
  return reply(false)
end
local found = task.status
local extras = extras_of(task)
if found == RUNNING then
  if ARGV[4] == '1' then
    task.cancel, extras[MESSAGE] = 1, ARGV[5]
    task.extras = cmsgpack.pack(extras)
    save(task)
    log_task('task.cancel_asked', task, ARGV[5])
    call('PUBLISH', CHANNEL .. 'control', task.worker) -- names the worker: others ignore it, or they would all renew their leases
  end
elseif not ENDS[found] then
  leave(task)
  cancel(task, extras, ARGV[5], ARGV[5])
  -- `prune` finds wake lists by the lanes of their queues. A queue that only had delayed tasks has no lane, so its wake
  -- list is removed here.
  local queue, lanes = task.kind.queue, KEY .. 'lanes'
  if call('SISMEMBER', lanes, 'high:' .. queue) + call('SISMEMBER', lanes, 'normal:' .. queue)
    + call('SISMEMBER', lanes, 'low:' .. queue) == 0 then
    call('DEL', KEY .. 'wake:' .. queue)
  end
end
return reply(found)
