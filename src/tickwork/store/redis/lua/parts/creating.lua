-- Creating tasks, with or without options: see `submit_with.lua` for the arguments and verdicts.
local WIDTH = 3
local NONE = {}
local last_position
local some_awaited = call('EXISTS', KEY .. 'awaited') == 1
local delayed = {}

-- Writes a new task. False when there is one of this id and `only_new` is set.
local function store(task, only_new)
  local value, state = task.head, packed(task)
  if task.offset <= LARGE then -- else it came with room for the state
    value = value .. state
    value = #value <= GLANCE and value or value .. string.rep('\0', ROOM)
  end
  if only_new then
    if not call('SET', task.key, value, 'NX') then
      return false
    end
  else
    call('SET', task.key, value)
  end
  if task.offset > LARGE then
    call('SETRANGE', task.key, task.offset, state)
  end
  return true
end

-- The verdict on a submit whose id is taken: '' when the same submit came before (it has the same nonce), else 'e'.
local function known(id, spec)
  local task = load(id)
  if task then
    return label_of(task.head).nonce == label_of(spec).nonce and '' or 'e'
  end
end

-- Creates a task that has a dedup key, dependencies or a schedule. Everything is looked up before the first write. `lenient`:
-- a dependency that does not exist counts as ended.
local function create_with(task, options, lenient)
  -- The dependencies that the task has to wait for. If one does not exist, the second value is its id.
  local function unmet()
    local waiting, seen = {}, {}
    for _, id in ipairs(options.depends_on) do
      if not seen[id] then
        seen[id] = true
        local upstream = load(id)
        if not upstream and not lenient then
          return nil, id
        end
        if upstream and upstream.status ~= SUCCESS and not (options.after_end and ENDS[upstream.status]) then
          waiting[#waiting + 1] = upstream
        end
      end
    end
    return waiting
  end

  local function wait_for(names)
    local extras = extras_of(task)
    extras[WAITING], task.status = names, BLOCKED
    task.extras = cmsgpack.pack(extras)
  end

  local other = options.dedup and dedup_holder(options.dedup)
  if other then
    return 'd' .. other
  end
  local names = options.waiting -- set by the caller if there are several partitions: it has looked up the dependencies
  if not names then
    local waiting, missing = unmet()
    if missing then
      return 'o' .. missing
    end
    names = {}
    for i, upstream in ipairs(waiting) do
      names[i] = upstream.id
      await_end(upstream, task.id)
    end
  end
  if #names > 0 then
    wait_for(names)
  end
  task.outbox = options.settle and 1 or task.outbox
  if options.dedup then
    hold_dedup(options.dedup, task.id, options.dedup_ttl, options.unique)
  end
  if options.expires or options.expires_at then
    call('ZADD', KEY .. 'deadlines', whole(options.expires_at or task.due_at + options.expires),
      in_turn(task.seq, task.id))
  end
  if task.status == READY and task.kind.fair then
    to_fair_lane(task)
  end
  store(task)
  return ''
end

local function new_task(id, spec, options)
  last_position = last_position + 1
  local due_at = options.at or now + (options.delay or 0)
  return {
    id = id, key = TASK .. id, head = spec, kind = kind_of(spec, (struct.unpack(LENGTHS, spec))), offset = size_of(spec),
    status = due_at > now and PENDING or READY, cancel = 0, outbox = 0, watched = options.watch and 1 or 0, place = MAIN,
    seq = last_position, submitted_at = now, due_at = math.max(due_at, 0), position = last_position, attempt = 0, losses = 0, fence = 0,
    started_at = 0, finished_at = 0, nonce = '', worker = '', extras = '',
  }
end

local function go_home(task)
  woken[task.kind.queue] = true -- also for a delayed task: a worker has to learn when it is due
  if task.status == READY and task.place == MAIN then
    to_stream(task.kind, task.position, task.id, task.offset)
  elseif task.status == PENDING then
    delayed[#delayed + 1] = task.due_at
    delayed[#delayed + 1] = in_turn(task.seq, task.id)
  elseif task.status == BLOCKED then
    enter(task)
  end
  if INDEXED then
    to_indexes(task.kind, task.head, task.seq, task.id)
  end
  log_fact('task.submitted', task.id, task.kind.name, '', 0, 0, '')
end

local function create(id, spec, packed_options, lenient)
  local options = packed_options == '' and NONE or cmsgpack.unpack(packed_options)
  local task = new_task(id, spec, options)
  if some_awaited and call('SISMEMBER', KEY .. 'awaited', id) == 1 then
    task.outbox = 1
  end
  local verdict = ''
  if options.depends_on then
    verdict = known(id, spec)
    if verdict then
      return verdict
    end
    verdict = create_with(task, options, lenient)
    some_awaited = true
  elseif not store(task, true) then
    return known(id, spec)
  end
  if verdict == '' then
    if options.watch then
      call('HSET', KEY .. 'watchers', id, options.watch)
    end
    go_home(task)
  end
  return verdict
end

-- Creates all tasks in the arguments, beginning at `from`. Returns a verdict for each. `lenient`: a dependency that does not
-- exist counts as ended.
local function create_all(from, lenient)
  local count, verdicts = (#ARGV - from + 1) / WIDTH, {}
  last_position = positions(count) - 1
  for i = 1, count do
    local at = from + (i - 1) * WIDTH
    verdicts[i] = create(ARGV[at], ARGV[at + 1], ARGV[at + 2], lenient)
  end
  in_slices('ZADD', KEY .. 'delayed', delayed)
  return verdicts
end
