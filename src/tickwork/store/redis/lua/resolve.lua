-- flags: allow-oom
-- parts: lanes records homes waiting ends
-- A dependency has ended: blocked -> ready or pending (if it was the last one), or cancelled. Arguments: id, upstream, 1 if the
-- upstream has succeeded, the fence of that end ('' for any). Reply: 1, or 0 when the task does not wait for it, or when the
-- upstream was retried since.
local task, upstream = load(ARGV[3]), ARGV[4]
if moved_on(upstream, ARGV[6]) then
  return reply(0)
end
if not task or task.status ~= BLOCKED then
  unawait(upstream, ARGV[3]) -- it does not wait any more; else the outbox entry would stay for ever
  return reply(0)
end
local extras, left, found = extras_of(task), {}, false
for _, other in ipairs(extras[WAITING]) do
  if other == upstream then
    found = true
  else
    left[#left + 1] = other
  end
end
if not found then
  unawait(upstream, task.id)
  return reply(0)
end
unawait(upstream, task.id)
extras[WAITING] = left
if ARGV[5] ~= '1' and not label_of(task.head).after_end then
  leave(task)
  cancel(task, extras, 'task ' .. upstream .. ', on which it depends, did not succeed', upstream)
  return reply(1)
end
if #left == 0 then
  leave(task)
  task.status, task.place = task.due_at > now and PENDING or READY, MAIN
  enter(task)
  woken[task.kind.queue] = true
end
task.extras = cmsgpack.pack(extras)
save(task)
log_task('task.resolved', task, upstream)
return reply(1)
