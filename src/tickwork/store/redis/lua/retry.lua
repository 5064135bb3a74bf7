-- flags: allow-oom
-- parts: lanes records homes waiting dedup
-- Run an ended task again, by hand: any end -> ready (front lane), blocked or pending, with counters reset; the fence only
-- grows. Arguments: id; the only status to retry from ('' for any end); its mark (see `mark_of`) as the caller saw it; 1 if the
-- caller has looked up its dependencies (in several partitions) and names only those that it has to wait for; the time for
-- which it holds its dedup key (0: it has none); then the ids on which it depends. Reply: the status found, nothing, or '=' when
-- it was retried since the caller saw it, perhaps by this very call sent before. A task is left as it is if it depends on one
-- that has failed, or on one that was removed before this task ever ran. It takes its dedup key again, unless another task
-- holds that.
local LOOKED, DEPENDS = ARGV[6] == '1', ARGV[6] == '1' or #ARGV > 7
local DEDUP_TTL = tonumber(ARGV[7])
local task = load(ARGV[3])
if not task then
  return reply(false)
end
if mark_of(task) ~= ARGV[5] then
  return reply('=')
end
local found = task.status
local is_left = string.sub(task.head, LABEL_AT, LABEL_AT + #NAMELESS - 1) ~= NAMELESS
if not ENDS[found] or not is_left or (ARGV[4] ~= '' and ARGV[4] ~= found) then
  return reply(found)
end

local label = label_of(task.head)
local after_end, waiting = label.after_end, {}
for i = 8, #ARGV do
  local upstream = not LOOKED and load(ARGV[i])
  if LOOKED then
    waiting[#waiting + 1] = ARGV[i]
  elseif not upstream then
    if task.started_at == 0 and not after_end then
      return reply(found)
    end
  elseif upstream.status ~= SUCCESS and not (after_end and ENDS[upstream.status]) then
    if ENDS[upstream.status] then
      return reply(found)
    end
    waiting[#waiting + 1] = upstream
  end
end

local other = DEDUP_TTL > 0 and dedup_holder(label.dedup)
if DEDUP_TTL > 0 and (not other or other == task.id) then
  hold_dedup(label.dedup, task.id, DEDUP_TTL)
end
leave(task)
call('ZREM', KEY .. 'outbox', task.id)
call('HDEL', KEY .. 'outbox:status', task.id)
local names = {}
for i, upstream in ipairs(waiting) do
  names[i] = LOOKED and upstream or upstream.id
  if not LOOKED then
    await_end(upstream, task.id)
  end
end
local before_its_time = DEPENDS and task.started_at == 0 and task.due_at > now
task.attempt, task.losses, task.fence, task.nonce, task.cancel = 0, 0, task.fence + 1, '', 0
task.started_at, task.finished_at = 0, 0
local extras = extras_of(task)
extras[CODE], extras[MESSAGE], extras[RESULT], extras[DURATION] = 0, '', '', -1
extras[PROGRESS], extras[NOTE], extras[WAITING] = -1, '', names
task.extras = cmsgpack.pack(extras)
task.status, task.place = #names > 0 and BLOCKED or before_its_time and PENDING or READY, FRONT
enter(task)
-- The whole value is written, since a state that shrinks in place would keep the memory of an old result.
call('SET', task.key, call('GETRANGE', task.key, 0, task.offset - 1) .. packed(task))
log_task('task.retried', task, '')
return reply(found)
