-- flags: allow-oom
-- parts: lanes records homes many
-- Move tasks to another due time: pending, retrying -> the same; ready, assigned -> pending. Arguments: the time, the same as a text for
-- the log, then for each task its id, its number (`seq`) as the caller saw it, and the time after its due time at which its
-- deadline is over ('' if that is none, or a fixed one): the caller knows it from the body. Reply: the status found of each. A task
-- that is to be due at that time already, perhaps by this very call sent before, is left as it is.
local DUE_AT, DETAIL = tonumber(ARGV[3]), ARGV[4]

local function moves(task)
  return task.status == READY or task.status == ASSIGNED or ((task.status == PENDING or task.status == RETRYING) and task.due_at ~= DUE_AT)
end

local answers = {}
for i = 5, #ARGV, 3 do
  local task = load(ARGV[i])
  if task and whole(task.seq) ~= ARGV[i + 1] then -- another one of this id was submitted since
    task = nil
  end
  answers[#answers + 1] = task and task.status or MISSING
  if task and moves(task) then
    leave(task)
    if task.status == READY or task.status == ASSIGNED then
      task.status, task.place = PENDING, MAIN
    end
    task.due_at = DUE_AT
    enter(task)
    save(task)
    if task.fence == 0 and ARGV[i + 2] ~= '' then
      call('ZADD', KEY .. 'deadlines', whole(DUE_AT + ARGV[i + 2]), in_turn(task.seq, task.id))
    end
    woken[task.kind.queue] = true -- a worker has to learn when it is due
    log_task('task.rescheduled', task, DETAIL)
  end
end
return reply_each(table.concat(answers))
