-- flags: allow-oom
-- parts: homes ends pulse claiming
-- End runs and take the next batch in the same step: running -> success, retrying, dead, failed, pending, ready or
-- cancelled. Arguments: number of outcomes; for each id, fence, nonce, kind, number, text, report, duration; then a
-- wish, or nothing. Kinds: S(ucceeded: report = extras), F(ailed: text = error, number = retry in), A(borted: text),
-- Z (snoozed: number, from now unless text is 'at'), R(eleased), T (stopped). Reply: verdicts (each 'l'ost, or 'd'one or
-- 'a'lready and the status), tasks dropped from the dead letters, and what `claim` answers.
local WIDTH = 8
local count = tonumber(ARGV[3])
local leases = {}

local function succeed(task, report, duration)
  if task.extras == '' then
    task.extras = report
  else
    local extras, last = extras_of(task), cmsgpack.unpack(report)
    for field = CODE, DURATION do
      extras[field] = last[field]
    end
    task.extras = cmsgpack.pack(extras)
  end
  finish_as(task, SUCCESS, 'task.succeeded', '', duration)
end

local function move_on(task, status, kind, due_at, detail)
  task.status, task.due_at = status, due_at
  enter(task)
  save(task)
  tell_task(kind, task, detail)
  woken[task.queue] = true
end

local function give_back(task)
  task.attempt, task.place, task.status = task.attempt - 1, FRONT, READY
  enter(task)
  save(task)
  tell_task('task.released', task, '')
end

local function apply(task, kind, number, text, report, duration)
  if kind == 'S' then
    return succeed(task, report, duration)
  end
  local extras = extras_of(task)
  if kind == 'F' or kind == 'A' or kind == 'T' then
    extras[DURATION] = duration
  end
  if kind == 'F' or kind == 'A' then
    extras[ERROR] = text
  end
  if task.cancel == 1 or kind == 'T' then
    return cancel(task, extras, extras[MESSAGE], '')
  end
  if kind == 'A' then
    return die(task, extras)
  end
  task.extras = task.extras == '' and kind ~= 'F' and '' or cmsgpack.pack(extras)
  if kind == 'F' then
    move_on(task, RETRYING, 'task.retrying', now + number, text)
  elseif kind == 'Z' then
    task.attempt = task.attempt - 1
    move_on(task, PENDING, 'task.snoozed', text == 'at' and number or now + number, '')
  else
    give_back(task)
  end
end

-- All are looked up first: the death of one may push an older dead one out, which was ended all the same.
local tasks = {}
for i = 0, count - 1 do
  local id = ARGV[4 + i * WIDTH]
  tasks[id] = tasks[id] or load(id)
end

if count > 1 then
  reserve(count)
end
local verdicts = {}
for i = 1, count do
  local at = 4 + (i - 1) * WIDTH
  local task, nonce = tasks[ARGV[at]], ARGV[at + 2]
  if not task or nonce == '' or task.fence ~= tonumber(ARGV[at + 1]) or task.nonce ~= nonce then
    verdicts[i] = 'l'
  elseif task.status ~= RUNNING then
    verdicts[i] = 'a' .. task.status
  else
    leases[#leases + 1] = task.id
    apply(task, ARGV[at + 3], tonumber(ARGV[at + 4]), ARGV[at + 5], ARGV[at + 6], tonumber(ARGV[at + 7]))
    verdicts[i] = 'd' .. task.status
  end
end
in_slices('ZREM', KEY .. 'leases', leases)

local claimed
if #ARGV > 3 + count * WIDTH then
  claimed = claim(wish_of(4 + count * WIDTH))
end
return reply({ verdicts, dropped, claimed })
