-- flags: allow-oom
-- parts: lanes records homes many
-- Assign ready tasks to workers: ready -> assigned; move others to their side lanes; then look at what else is ready. Arguments:
-- milliseconds for which an assignment holds, number of assignments, id and worker of each, number of tasks to put aside, id and
-- lane of each; then nothing, or a look: how many tasks, queues, kinds to look for in side lanes (both texts of lines, that of the
-- kinds begins with a line end), and workers. Reply: a letter for each assignment ('1' done), the types that are paused, the kinds
-- in side lanes, the load of each worker, id and label of each task, and the queues to be woken.
local HOLD_UNTIL = whole(now + tonumber(ARGV[3]))
local WAKE_KEPT = 3600 -- seconds after which the wake list of an inbox is removed
local at = 5
local answers, inboxes, given = {}, {}, {} -- `given`: to whom each task went in this call

for _ = 1, tonumber(ARGV[4]) do
  local id, worker = ARGV[at], ARGV[at + 1]
  local task = not given[id] and load(id)
  if task and not task.broken and task.status == READY then
    leave(task)
    task.status, task.worker, given[id] = ASSIGNED, worker, worker
    local held = inboxes[worker] or {}
    held[#held + 1], held[#held + 2], inboxes[worker] = HOLD_UNTIL, id, held
    save_later(task)
    log_task('task.assigned', task, '')
    answers[#answers + 1] = '1'
  else
    local has_it = given[id] == worker or task and task.status == ASSIGNED and task.worker == worker
    answers[#answers + 1] = has_it and '1' or '0'
  end
  at = at + 2
end
save_all()
for worker, held in pairs(inboxes) do
  in_slices('ZADD', KEY .. 'inbox:' .. worker, held)
  call('ZADD', KEY .. 'inboxes', 'LT', HOLD_UNTIL, worker)
  local wake = KEY .. 'wake:/' .. worker
  if ALONE and call('LLEN', wake) == 0 then
    call('RPUSH', wake, '1')
    call('EXPIRE', wake, WAKE_KEPT)
  end
end

local count = tonumber(ARGV[at])
for i = at + 1, at + 2 * count, 2 do
  local task = load(ARGV[i])
  if task and not task.broken and task.status == READY and (task.place == MAIN or task.place == FRONT) then
    leave(task)
    task.place = tonumber(ARGV[i + 1])
    enter(task)
    save(task)
    log_task('task.parked', task, task.kind.type)
    woken[task.kind.queue] = nil -- nobody can start it
  end
end
at = at + 2 * count + 1

local more = tonumber(ARGV[at] or '0')
local found, aside, fronts, sides, paused, paused_types, loads = {}, {}, {}, {}, {}, {}, {}

-- Adds a task, if it is ready in this lane. An entry of a stream must be at the task's own position.
local function add(task, place, position)
  local is_here = task and not task.broken and task.status == READY
  if place then
    is_here = is_here and task.place == MAIN and task.position .. '-0' == position
  end
  if is_here then
    local _, label = struct.unpack(LENGTHS, task.head)
    found[#found + 1] = task.id
    found[#found + 1] = string.sub(task.head, LABEL_AT, LABEL_AT + label - 1)
    more = more - 1
  end
  return is_here
end

local function look_in_main(lane)
  local stream, keys = KEY .. 'stream:' .. lane, {}
  local entries = more > 0 and call('XRANGE', stream, '-', '+', 'COUNT', more) or {}
  for i, entry in ipairs(entries) do
    keys[i] = entry[2][1] == 'id' and TASK .. entry[2][2] or KEY -- a key that never exists
  end
  for first = 1, #keys, SLICE do
    for i, value in ipairs(call('MGET', unpack(keys, first, math.min(first + SLICE - 1, #keys)))) do
      local entry = entries[first + i - 1]
      local task
      if value then
        task = read(entry[2][2], keys[first + i - 1], value)
      elseif entry[2][1] == 'large' then
        task = load(entry[2][2])
      end
      if not add(task, MAIN, entry[1]) then
        call('XDEL', stream, entry[1])
        if task and task.broken then
          end_unreadable(task)
        end
      end
    end
  end
end

local function look_in_sorted(lane_keys)
  local heads = {}
  for _, lane_key in ipairs(lane_keys) do
    local members = more > 0 and call('ZRANGE', KEY .. lane_key, 0, more - 1, 'WITHSCORES') or {}
    for i = 1, #members, 2 do
      heads[#heads + 1] = { at = tonumber(members[i + 1]), id = members[i], lane_key = lane_key }
    end
  end
  table.sort(heads, function(a, b)
    return a.at < b.at
  end)
  for i = 1, math.min(more, #heads) do
    local task = load(heads[i].id)
    if not add(task) then
      off_sorted_lane(heads[i].lane_key, heads[i].id)
      if task and task.broken then
        end_unreadable(task)
      end
    end
  end
end

local function look()
  local kinds, queues, is_asked = ARGV[at + 2], {}, {}
  for _, name in ipairs(call('HKEYS', KEY .. 'pauses')) do
    paused[name] = true
    paused_types[#paused_types + 1] = string.match(name, '^type:(.*)$')
  end
  for queue in string.gmatch(ARGV[at + 1], '[^\n]+') do
    if not paused['queue:' .. queue] and not is_asked[queue] then
      queues[#queues + 1], is_asked[queue] = queue, true
    end
  end
  for _, lane_key in ipairs(call('SMEMBERS', KEY .. 'aside')) do
    local place, lane, kind = string.match(lane_key, '^(%a+):([^/]*)/?(.*)$')
    if place == 'front' then
      fronts[lane] = lane_key
    elseif is_asked[string.match(lane, '^%a+:(.*)$')] then
      aside[#aside + 1] = kind
      if string.find(kinds, '\n' .. kind .. '\n', 1, true) then
        sides[lane] = sides[lane] or {}
        table.insert(sides[lane], lane_key)
      end
    end
  end
  for _, band in ipairs({ 'high', 'normal', 'low' }) do
    for _, queue in ipairs(queues) do
      local lane = band .. ':' .. queue
      look_in_sorted({ fronts[lane] })
      look_in_sorted(sides[lane] or {})
      look_in_main(lane)
    end
  end
  for i = at + 3, #ARGV do
    loads[#loads + 1] = call('ZCARD', leases_of(ARGV[i])) + call('ZCARD', KEY .. 'inbox:' .. ARGV[i])
  end
end

if more > 0 then
  look()
end
local queues = {}
for queue in pairs(woken) do
  queues[#queues + 1] = queue
end
return reply({ table.concat(answers), paused_types, aside, loads, found, queues })
