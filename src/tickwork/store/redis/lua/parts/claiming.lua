-- Which tasks a claim gets. Delayed tasks that are due are promoted first. Then tasks are taken by band, within a band by
-- the order of the queues in the claim, within a queue from the front lane, the side lanes, the main lane and the fair lane. A task
-- that the claimer cannot start is parked once, in the side lane of its kind. What was assigned to the claimer comes before all that.
local TYPE_UNKNOWN, TYPE_PAUSED, LIMITED, LABELS_MISSING = 1, 3, 4, 7 -- why a task is parked
local CLAIM_MAX = 1000 -- tasks that one claim gets at most, whatever its limit
local PROMOTE_MAX = 100 -- due tasks that one claim moves to their lanes at most
local PARK_MAX = 100 -- tasks that one claim parks at most, so that the call stays bounded
local NEEDS_MAX = 1000 -- side lanes of tasks with needs at which one claim looks, if there are more lanes than it can name
local MANY_QUEUES = 16 -- from so many on, a claim finds out which of their lanes exist before it looks at any
local WAKE_KEPT = 3600 -- seconds after which the wake list of a queue is removed that had no new tasks

local promoted = {} -- queues that are woken only because of tasks that this call has promoted

local function promote_task(task)
  local queue = task.kind.queue
  promoted[queue] = promoted[queue] or not woken[queue]
  task.status, task.place = READY, is_held(task) and FRONT or MAIN
  enter(task)
  save(task)
  log_task('task.due', task, '')
end

local function due_in(home, limit, found)
  local members = call('ZRANGEBYSCORE', KEY .. home, '-inf', whole(now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #members, 2 do
    found[#found + 1] = { at = tonumber(members[i + 1]), member = members[i], home = home }
  end
end

local function sooner(a, b)
  if a.at ~= b.at then
    return a.at < b.at
  end
  return a.member < b.member
end

-- Milliseconds until the next delayed task is due, -1 for none.
local function next_due_in()
  local first
  for _, home in ipairs({ 'delayed', 'retrying' }) do
    local head = call('ZRANGE', KEY .. home, 0, 0, 'WITHSCORES')
    if head[2] and (not first or tonumber(head[2]) < first) then
      first = tonumber(head[2])
    end
  end
  return first and math.max(first - now, 0) or -1
end

-- Moves due tasks to the ends of their lanes, at most `limit`. Returns what `next_due_in` returns afterwards.
local function promote(limit)
  local wait = next_due_in()
  if wait ~= 0 then
    return wait
  end
  local found = {}
  due_in('delayed', limit, found)
  due_in('retrying', limit, found)
  table.sort(found, sooner)
  for i = 1, math.min(limit, #found) do
    call('ZREM', KEY .. found[i].home, found[i].member)
    local task = load(string.sub(found[i].member, 12))
    if task and task.broken then
      end_unreadable(task)
    elseif task then
      promote_task(task)
    end
  end
  return next_due_in()
end

local function park(task, reason)
  task.place = reason
  enter(task)
  save(task)
  log_task('task.parked', task, task.kind.type)
end

-- Whether a claimer can start tasks of a kind. Its types come as one text, and so do its labels: a worker may know a thousand types,
-- and meets few of them in one claim. A kind is a type and, behind a space, needs: labels, or a worker after an at sign. Behind a
-- slash is a type of which only the front of its lanes is wanted; `front` says whether it is asked for that.
local function types_in(text, labels, front)
  return setmetatable({}, { __index = function(known, kind)
    local type, needs = string.match(kind, '^([^ ]*) (.*)$')
    local found
    if needs then
      found = known[type]
      for need in string.gmatch(needs, '[^,]+') do
        found = found and string.find(labels, '\n' .. need .. '\n', 1, true) ~= nil
      end
    else
      found = string.find(text, '\n' .. kind .. '\n', 1, true) ~= nil
        or front and string.find(text, '\n/' .. kind .. '\n', 1, true) ~= nil
    end
    known[kind] = found
    return found
  end })
end

local function lines_in(text)
  local lines = {}
  for line in string.gmatch(text, '[^\n]+') do
    lines[#lines + 1] = line
  end
  return lines
end

-- Reads a claim from the arguments, beginning at `at`: worker, its process, turn, nonce, lease, limit, 1 if the process runs a
-- suspect of another partition, queues, number of types, types, labels, inboxes, queues whose tasks come by an inbox. The last
-- three and those before are texts of lines; those of types and labels begin with a line end. Of queues and types behind a slash only
-- the front of their lanes is wanted.
local function claim_of(at)
  local queues, front_queues, types = lines_in(ARGV[at + 7]), {}, types_in(ARGV[at + 9], ARGV[at + 10])
  local has_front_types = string.find(ARGV[at + 9], '/', 1, true) -- as most claims have not
  if string.find(ARGV[at + 7], '/', 1, true) then
    for i, queue in ipairs(queues) do
      queues[i] = string.gsub(queue, '^/', '')
      front_queues[queues[i]] = queues[i] ~= queue
    end
  end
  local claim = { worker = ARGV[at], process = ARGV[at + 1], turn = ARGV[at] .. '#' .. ARGV[at + 2], nonce = ARGV[at + 3],
    lease_ttl = tonumber(ARGV[at + 4]), limit = math.min(tonumber(ARGV[at + 5]), CLAIM_MAX), suspect = ARGV[at + 6] == '1',
    queues = queues, front_queues = front_queues, type_count = tonumber(ARGV[at + 8]), type_names = ARGV[at + 9],
    types = types, front = has_front_types and types_in(ARGV[at + 9], ARGV[at + 10], true) or types, inboxes = ARGV[at + 11], assigned = ARGV[at + 12] }
  return claim
end

-- A task with its payload, as the claimer needs it; a large one without, which the claimer reads itself.
local function load_whole(id)
  local task = load(id)
  if task and not task.small and not task.broken and task.offset <= LARGE then
    return read(id, TASK .. id, call('GET', TASK .. id))
  end
  return task
end

local function answer_for(task, value)
  return task.offset > LARGE and '' or value
end

-- The same claim came before, and its reply was lost: the tasks that it got are answered again, as far as they still run.
local function replay(claim, batch)
  local answer = { next_due_in() }
  for id in string.gmatch(string.sub(batch, #claim.nonce + 2), '[^ ]+') do
    local task = load_whole(id)
    if task and task.status == RUNNING and task.nonce == claim.nonce then
      answer[#answer + 1] = id
      answer[#answer + 1] = answer_for(task, task.head)
    end
  end
  return answer
end

-- Whether the loss of one more worker would end this task for good: see `rules.is_suspect`.
local function is_suspect(task)
  return task.losses > 0 and task.losses >= MAX_LOSSES - 1
end

-- Whether a process runs a suspect now. The key `chances` holds the last one that it took.
local function runs_suspect(process)
  local id, fence = string.match(call('HGET', KEY .. 'chances', process) or '', '^(%S+) (%d+)$')
  local task = id and load(id)
  return task and task.status == RUNNING and task.fence == tonumber(fence)
end

local function start_all(claim, taken, some_deadlines)
  local answer, leases, ids = { 0 }, {}, {}
  local lease_until = whole(now + claim.lease_ttl)
  for i, task in ipairs(taken) do
    local worker = task.inbox or claim.worker
    task.status, task.attempt, task.fence = RUNNING, task.attempt + 1, math.max(task.fence + 1, now * 1000)
    task.nonce, task.worker, task.started_at, task.finished_at = claim.nonce, worker, now, 0
    local held = leases[worker] or {}
    held[#held + 1], held[#held + 2], leases[worker], ids[i] = lease_until, task.id, held, task.id
    answer[2 * i], answer[2 * i + 1] = task.id, answer_for(task, save_later(task))
    log_task('task.claimed', task, '')
    if is_suspect(task) then
      call('HSET', KEY .. 'chances', claim.process, task.id .. ' ' .. whole(task.fence))
    end
  end
  save_all()
  if #taken > 0 then
    for worker, held in pairs(leases) do
      in_slices('ZADD', leases_of(worker), held)
      call('ZADD', KEY .. 'lessees', 'LT', lease_until, worker)
    end
    if some_deadlines then
      local members = {}
      for i, task in ipairs(taken) do
        members[i] = in_turn(task.seq, task.id)
      end
      in_slices('ZREM', KEY .. 'deadlines', members)
    end
  end
  call('HSET', KEY .. 'claims', claim.turn, claim.nonce .. ' ' .. table.concat(ids, ' '))
  return answer
end

local function take_or_park(search, task, types)
  if types[task.kind.starts] then
    search.suspect = search.suspect or is_suspect(task)
    search.taken[#search.taken + 1] = task
    search.more = search.more - 1
  else
    search.left = search.left - 1
    local type = task.kind.type
    park(task, search.paused['type:' .. type] and TYPE_PAUSED or types[type] and LABELS_MISSING or search.front[type] and LIMITED
      or TYPE_UNKNOWN)
  end
end

-- Takes what was assigned to the owner of an inbox. What is paused goes back.
local function take_inbox(search, owner)
  local inbox, found, ids = KEY .. 'inbox:' .. owner, {}, {}
  for _, id in ipairs(call('ZRANGE', inbox, 0, CLAIM_MAX - 1)) do
    local task = load_whole(id)
    if task and task.status == ASSIGNED and task.worker == owner then
      found[#found + 1] = task
    else
      call('ZREM', inbox, id)
      if task and task.broken then
        end_unreadable(task)
      end
    end
  end
  table.sort(found, function(a, b)
    return a.kind.band < b.kind.band or a.kind.band == b.kind.band and a.position < b.position
  end)
  for _, task in ipairs(found) do
    if search.more == 0 then
      break
    end
    if search.paused['queue:' .. task.kind.queue] or search.paused['type:' .. task.kind.type] then
      unassign(task)
    elseif not (search.suspect and is_suspect(task)) then
      ids[#ids + 1] = task.id
      task.inbox = owner
      search.suspect = search.suspect or is_suspect(task)
      search.taken[#search.taken + 1] = task
      search.more = search.more - 1
    end
  end
  in_slices('ZREM', inbox, ids)
end

-- Wakes whoever assigns tasks, if a queue has some while the claimer has slots left.
local function ask_for_more(claim)
  for _, queue in ipairs(lines_in(claim.assigned)) do
    for _, band in ipairs({ 'normal', 'high', 'low' }) do
      local lane = band .. ':' .. queue
      if call('XLEN', KEY .. 'stream:' .. lane) > 0 or call('EXISTS', KEY .. 'front:' .. lane, KEY .. 'fair:' .. lane) > 0 then
        woken[queue] = true
        break
      end
    end
  end
end

local function take_front(search, lane)
  local passed = 0
  while search.more > 0 and passed <= PARK_MAX do
    local id = call('ZRANGE', KEY .. 'front:' .. lane, passed, passed)[1]
    if not id then
      return
    end
    local task = load_whole(id)
    if task and not task.broken and not search.front[task.kind.starts] and search.left == 0 then
      search.spent = true
      return
    end
    if task and task.broken then
      off_sorted_lane('front:' .. lane, id)
      end_unreadable(task)
    elseif task and search.suspect and search.front[task.kind.starts] and is_suspect(task) then
      passed = passed + 1
    else
      off_sorted_lane('front:' .. lane, id)
      if task then
        take_or_park(search, task, search.front)
      end
    end
  end
end

local function take_sides(search, lane)
  local heads = {}
  for _, lane_key in ipairs(search.sides[lane]) do
    local members = call('ZRANGE', KEY .. lane_key, 0, search.more - 1, 'WITHSCORES')
    for i = 1, #members, 2 do
      heads[#heads + 1] = { at = tonumber(members[i + 1]), member = members[i], lane_key = lane_key }
    end
  end
  table.sort(heads, sooner)
  for i = 1, math.min(search.more, #heads) do
    local task = load_whole(heads[i].member)
    off_sorted_lane(heads[i].lane_key, heads[i].member)
    if task and task.broken then
      end_unreadable(task)
    elseif task then
      take_or_park(search, task, search.types)
    end
  end
end

local function take_main(search, lane)
  local stream = KEY .. 'stream:' .. lane
  while search.more > 0 do
    if search.left == 0 then
      search.spent = true
      return
    end
    local count = math.min(search.more, search.left)
    local entries = call('XRANGE', stream, '-', '+', 'COUNT', count)
    if #entries == 0 then
      return
    end
    local keys = {}
    for i, entry in ipairs(entries) do
      keys[i] = entry[2][1] == 'id' and TASK .. entry[2][2] or KEY -- a key that never exists
    end
    for i, value in ipairs(call('MGET', unpack(keys))) do
      local task
      if value then
        task = read(entries[i][2][2], keys[i], value)
      elseif entries[i][2][1] == 'large' then
        task = load(entries[i][2][2])
      end
      if task and task.broken then
        end_unreadable(task)
      -- The entry must be at the task's own position: an entry that was written twice starts the task once.
      elseif task and task.status == READY and task.place == MAIN and task.position .. '-0' == entries[i][1] then
        take_or_park(search, task, search.types)
      end
    end
    -- Trimming the head of the stream is far cheaper than deleting entries one by one.
    call('XTRIM', stream, 'MINID', string.sub(entries[#entries][1], 1, -2) .. '1')
    if #entries < count then
      return
    end
  end
end

local function take_fair(search, lane)
  local lane_key, turn, served = 'fair:' .. lane, 0, #search.taken
  while search.more > 0 do
    if search.left == 0 then
      search.spent = true
      break
    end
    local count = math.min(search.more, search.left)
    local members = call('ZRANGE', KEY .. lane_key, 0, count - 1)
    for _, member in ipairs(members) do
      local task = load_whole(string.sub(member, 12))
      if task and task.broken then
        end_unreadable(task)
      -- An entry that was written twice, under another number, starts the task once.
      elseif task and task.status == READY and sorted_lane_of(task) == lane_key and in_turn(task.seq, task.id) == member then
        take_or_park(search, task, search.types)
        turn = search.taken[#search.taken] == task and task.position or turn
      end
    end
    in_slices('ZREM', KEY .. lane_key, members)
    if #members < count then
      break
    end
  end
  if call('EXISTS', KEY .. lane_key) == 0 then
    call('SREM', KEY .. 'aside', lane_key)
  end
  if turn > 0 then
    serve(lane, turn, #search.taken - served)
  end
end

local function note_aside(search, lane_key)
  local place, lane, kind = string.match(lane_key, '^(%a+):([^/]*)/?(.*)$')
  if place == 'front' then
    search.fronts[lane] = true
  elseif place == 'fair' then
    search.fairs[lane] = true
  elseif search.types[kind] then
    local sides = search.sides[lane] or {}
    sides[#sides + 1], search.sides[lane] = lane_key, sides
  end
end

-- Those of a set that may concern a claim: all members, if they are no more than `most`; else those of the names given.
local function members_of(set, most, names_of, claim)
  if call('SCARD', KEY .. set) <= most then
    return call('SMEMBERS', KEY .. set)
  end
  local names, found = names_of(claim), {}
  for first = 1, #names, SLICE do
    local last = math.min(first + SLICE - 1, #names)
    for i, is_member in ipairs(call('SMISMEMBER', KEY .. set, unpack(names, first, last))) do
      if is_member == 1 then
        found[#found + 1] = names[first + i - 1]
      end
    end
  end
  return found
end

local function names_aside(claim)
  local names = {}
  for _, queue in ipairs(claim.queues) do
    for _, band in pairs(BANDS) do
      names[#names + 1] = 'front:' .. band .. ':' .. queue
      names[#names + 1] = 'fair:' .. band .. ':' .. queue
      for kind in string.gmatch(claim.type_names, '[^\n]+') do
        names[#names + 1] = 'side:' .. band .. ':' .. queue .. '/' .. kind
      end
    end
  end
  return names
end

local function names_of_lanes(claim)
  local names = {}
  for _, queue in ipairs(claim.queues) do
    for _, band in pairs(BANDS) do
      names[#names + 1] = band .. ':' .. queue
    end
  end
  return names
end

-- Finds out which front, side and fair lanes are not empty.
local function look_aside(search, claim)
  local most = 3 * #claim.queues * (claim.type_count + 2)
  for _, lane_key in ipairs(members_of('aside', most, names_aside, claim)) do
    note_aside(search, lane_key)
  end
  if call('SCARD', KEY .. 'aside') > most then
    for _, lane_key in ipairs(call('SRANDMEMBER', KEY .. 'aside:needs', NEEDS_MAX)) do
      note_aside(search, lane_key)
    end
  end
end

-- With many queues: which of them have a lane in each band, as most have none. Nil with few queues, whose lanes are looked for.
local function queues_by_band(search, claim)
  if #claim.queues < MANY_QUEUES then
    return nil
  end
  local found = { high = {}, normal = {}, low = {} }
  local function add(lane)
    local band, queue = string.match(lane, '^(%a+):(.*)$')
    found[band][queue] = true
  end
  for _, lane in ipairs(members_of('lanes', 3 * #claim.queues, names_of_lanes, claim)) do
    add(lane)
  end
  for lane in pairs(search.fronts) do
    add(lane)
  end
  for lane in pairs(search.sides) do
    add(lane)
  end
  for lane in pairs(search.fairs) do
    add(lane)
  end
  return found
end

-- With many queues, a lane that is empty is removed, so that the next claim does not look at it. A submit creates it again.
local function forget_main(lane, queue)
  call('DEL', KEY .. 'stream:' .. lane)
  call('SREM', KEY .. 'lanes', lane)
  call('EXPIRE', KEY .. 'wake:' .. queue, WAKE_KEPT) -- `prune` does not find it any more
end

local function take_behind(search, lane, queue)
  if search.sides[lane] then
    take_sides(search, lane)
  end
  if call('XLEN', KEY .. 'stream:' .. lane) > 0 then
    take_main(search, lane)
  elseif search.by_band then
    forget_main(lane, queue)
  end
  if search.fairs[lane] then
    take_fair(search, lane)
  end
end

local function take_from(search, lane, queue)
  if search.fronts[lane] then
    take_front(search, lane)
  end
  if not search.front_queues[queue] then
    take_behind(search, lane, queue)
  end
  if search.more == 0 then
    woken[queue] = true -- more tasks may be left, for another idle worker
  end
end

local function take_from_band(search, claim, band)
  local queues = search.by_band and search.by_band[band]
  if queues and not next(queues) then
    return
  end
  for _, queue in ipairs(claim.queues) do
    if search.more == 0 or search.spent then
      return
    end
    if (not queues or queues[queue]) and not search.paused['queue:' .. queue] then
      take_from(search, band .. ':' .. queue, queue)
    end
  end
end

local function startable(claim)
  local paused = {}
  local search = { types = claim.types, front = claim.front, front_queues = claim.front_queues, more = claim.limit, left = PARK_MAX,
    taken = {}, fronts = {}, sides = {}, fairs = {}, paused = paused }
  for _, name in ipairs(call('HKEYS', KEY .. 'pauses')) do
    paused[name] = true
    local kind = string.match(name, '^type:(.*)$')
    if kind then
      search.types[kind], search.front[kind] = false, false
    end
  end
  if claim.inboxes ~= '' then -- first, since what is paused goes back to its front lane
    search.suspect = claim.suspect or runs_suspect(claim.process)
    for _, owner in ipairs(lines_in(claim.inboxes)) do
      take_inbox(search, owner)
    end
  end
  if call('EXISTS', KEY .. 'aside') == 1 then
    look_aside(search, claim)
    search.suspect = search.suspect or claim.suspect or runs_suspect(claim.process)
  end
  search.by_band = queues_by_band(search, claim)
  for _, band in ipairs({ 'high', 'normal', 'low' }) do
    take_from_band(search, claim, band)
  end
  return search
end

local EXPECTED_FOR = 3000 -- milliseconds for which a worker that was told of the next delayed task is expected to come for it

-- What a claimer is told of the time until the next delayed task. Of many workers only one is told, or all idle ones would claim at
-- that moment. If it does not come, the leader promotes the task, and wakes another one.
local function told(claim, wait)
  if wait <= 0 then
    return wait
  end
  local due = whole(now + wait) .. ' '
  local expected, held = due .. claim.worker, call('GET', KEY .. 'expected')
  if held == expected then
    return wait
  end
  if held and string.sub(held, 1, #due) == due then
    return -1
  end
  call('SET', KEY .. 'expected', expected, 'PX', EXPECTED_FOR)
  return wait
end

local OVERDUE = -2 -- the reply to a claim that has to wait until overdue tasks are cancelled

-- Grants tasks to a claim that has not come before. Returns the reply of `claim.lua`. No task may start after its deadline, so a
-- claim is refused while there is a deadline that is over; the caller runs `promote`, and claims again.
local function grant_new(claim)
  local deadline = call('ZRANGE', KEY .. 'deadlines', 0, 0, 'WITHSCORES')[2]
  if deadline and tonumber(deadline) <= now then
    return { OVERDUE }
  end
  local wait = promote(math.min(claim.limit + PARK_MAX, PROMOTE_MAX))
  local search = startable(claim)
  if search.more > 0 and search.left == PARK_MAX and next(promoted) then
    for _, queue in ipairs(claim.queues) do -- this claim has taken all that it promoted there, so nobody else need look
      woken[queue] = woken[queue] and not promoted[queue] or nil
    end
  end
  if search.more > 0 and claim.assigned ~= '' then
    ask_for_more(claim)
  end
  local answer = start_all(claim, search.taken, deadline)
  answer[1] = search.spent and 0 or told(claim, wait)
  return answer
end

local function grant(claim)
  pulse()
  local last = call('HGET', KEY .. 'claims', claim.turn)
  if last and string.sub(last, 1, #claim.nonce + 1) == claim.nonce .. ' ' then
    return replay(claim, last)
  end
  return grant_new(claim)
end
