-- flags: allow-oom
-- parts: lanes records homes waiting ends pulse claiming
-- End runs, and grant the next tasks in the same step: running -> success, retrying, dead, failed, pending, ready or
-- cancelled. Arguments: number of outcomes, the outcomes as `records.pack_outcome` writes them; then a claim (see `claim_of`)
-- or nothing. Kinds of outcomes: S (succeeded: text is the report), F (failed: text is the error, number the delay of the
-- retry), A (aborted: text is the error), Z (snoozed: number is a delay, or a time if text begins with 'at'; behind a '!'
-- follows the error), H (held: number is a delay, text the lane and the gate), R (released), T (stopped: text is the message, if there is one). Reply: verdicts in one text, two letters each ('l ' lost; 'd' done or 'a'
-- already done, and the status), dead letters that were dropped, and the reply of `claim.lua`.
local OUTCOME = '>BBc1I7ddI4'
local OUTCOME_SIZE = struct.size(OUTCOME)
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
  log_task(kind, task, detail)
  woken[task.kind.queue] = true
end

local function give_back(task)
  task.attempt, task.place, task.status = task.attempt - 1, FRONT, READY
  enter(task)
  save(task)
  log_task('task.released', task, '')
end

local function apply(task, outcome)
  local kind, text = outcome.kind, outcome.text
  if kind == 'S' then
    return succeed(task, text, outcome.duration)
  end
  local extras = extras_of(task)
  if kind == 'F' or kind == 'A' or kind == 'T' then
    extras[DURATION] = outcome.duration
  end
  local at
  if kind == 'Z' then
    at, text = string.match(text, '^(a?t?)!?(.*)$')
  end
  if kind == 'F' or kind == 'A' or kind == 'Z' and text ~= '' then
    extras[ERROR] = text
  end
  if task.cancel == 1 or kind == 'T' then
    return cancel(task, extras, kind == 'T' and text ~= '' and text or extras[MESSAGE], '')
  end
  if kind == 'A' then
    return die(task, extras)
  end
  extras[PROGRESS], extras[NOTE] = -1, ''
  task.extras = task.extras == '' and (text == '' or kind == 'H') and '' or cmsgpack.pack(extras)
  if kind == 'F' then
    remember(task, task.attempt, now, 'failed', outcome.duration, text)
    move_on(task, RETRYING, 'task.retrying', now + outcome.number, text)
  elseif kind == 'Z' then
    remember(task, task.attempt, now, 'snoozed', -1, text)
    task.attempt = task.attempt - 1
    move_on(task, PENDING, 'task.snoozed', at == 'at' and math.max(outcome.number, 0) or now + outcome.number, '')
  elseif kind == 'H' then
    task.attempt, task.held = task.attempt - 1, tonumber(string.sub(text, 1, 1))
    move_on(task, PENDING, 'task.held', now + outcome.number, string.sub(text, 2))
  else
    give_back(task)
  end
end

local function outcome_of(packed)
  local id, nonce, kind, fence, number, duration, text = struct.unpack(OUTCOME, packed)
  local nonce_at = OUTCOME_SIZE + 1 + id
  local text_at = nonce_at + nonce
  return {
    id = string.sub(packed, OUTCOME_SIZE + 1, nonce_at - 1), nonce = string.sub(packed, nonce_at, text_at - 1),
    kind = kind, fence = fence, number = number, duration = duration, text = string.sub(packed, text_at, text_at + text - 1),
  }
end

-- All tasks are loaded first. Ending one may drop an older dead letter, which may be among these tasks if a call is sent
-- again; its verdict is still that it has ended.
local outcomes, tasks = {}, {}
for i = 1, count do
  local outcome = outcome_of(ARGV[3 + i])
  outcomes[i], tasks[outcome.id] = outcome, tasks[outcome.id] or load(outcome.id)
end

if count > 1 then
  reserve(count)
end
local verdicts = {}
for i, outcome in ipairs(outcomes) do
  local task, nonce = tasks[outcome.id], outcome.nonce
  if not task or nonce == '' or task.fence ~= outcome.fence or task.nonce ~= nonce then
    verdicts[i] = 'l '
  elseif task.status ~= RUNNING then
    verdicts[i] = 'a' .. task.status
  else
    local held = leases[task.worker] or {}
    held[#held + 1], leases[task.worker] = task.id, held
    if ALONE and is_suspect(task) and call('LLEN', KEY .. 'wake:/' .. task.worker) == 0 then
      call('RPUSH', KEY .. 'wake:/' .. task.worker, '1') -- its standing claim may be granted the next one now
    end
    apply(task, outcome)
    verdicts[i] = 'd' .. task.status
  end
end
save_all()
for worker, held in pairs(leases) do
  in_slices('ZREM', leases_of(worker), held)
end

local claimed
if #ARGV > 3 + count then
  claimed = grant(claim_of(4 + count))
end
return reply({ table.concat(verdicts), dropped, claimed })
