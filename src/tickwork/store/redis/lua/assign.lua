-- flags: allow-oom
-- parts: lanes records homes many
-- Assign ready tasks to workers: ready -> assigned; move others to their side lanes; then look at what else is ready. Arguments:
-- milliseconds for which an assignment holds, number of assignments, id and worker of each, number of tasks to put aside, id and
-- lane of each; then nothing, or a look: how many tasks at most, how many more than there are free slots, queues, side lanes to look
-- in, as `<queue>/<kind>` (both texts of lines, that of the lanes begins with a line end), and each worker with the number of its slots. Reply: a letter for each assignment ('1' done), the types that are paused, the side
-- lanes that have tasks, the load of each worker, id and label of each task, and the queues to be woken.
local HOLD_UNTIL = whole(now + tonumber(ARGV[3]))
local WAKE_KEPT = 3600 -- seconds after which the wake list of an inbox is removed
local at = 5
-- `given`: to whom each task went; `taken`: what leaves each stream; `served`: the last turn of each fair lane, and how many it gave.
local answers, inboxes, given, taken, served = {}, {}, {}, {}, {}

for _ = 1, tonumber(ARGV[4]) do
  local id, worker = ARGV[at], ARGV[at + 1]
  local task = not given[id] and load(id)
  if task and not task.broken and task.status == READY then
    if task.place == MAIN then
      local entries = taken[task.kind.stream] or { count = 0 }
      entries[task.position .. '-0'], entries.count, taken[task.kind.stream] = true, entries.count + 1, entries
    else
      leave(task)
    end
    if task.place == FAIR then
      local turns = served[task.kind.lane] or { last = 0, count = 0 }
      turns.last, turns.count, served[task.kind.lane] = math.max(turns.last, task.position), turns.count + 1, turns
      task.position = position() -- virtual time is no order among tasks of several lanes
    end
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
for lane, turns in pairs(served) do
  serve(lane, turns.last, turns.count)
end

-- Takes entries out of a stream. Trimming its head is far cheaper than deleting entries one by one.
local function take_off(stream, entries)
  local last
  for _, entry in ipairs(call('XRANGE', stream, '-', '+', 'COUNT', entries.count)) do
    if not entries[entry[1]] then
      break
    end
    entries[entry[1]], last = nil, entry[1]
  end
  if last then
    call('XTRIM', stream, 'MINID', string.sub(last, 1, -2) .. '1')
  end
  entries.count = nil
  for entry in pairs(entries) do
    call('XDEL', stream, entry)
  end
end

for stream, entries in pairs(taken) do
  take_off(stream, entries)
end
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
  if task and not task.broken and task.status == READY and (task.place == MAIN or task.place == FRONT or task.place == FAIR) then
    leave(task)
    task.place = tonumber(ARGV[i + 1])
    enter(task)
    save(task)
    log_task('task.parked', task, task.kind.type)
  end
end
at = at + 2 * count + 1

local more = 0
local found, aside, fronts, sides, fairs, paused, paused_types, loads = {}, {}, {}, {}, {}, {}, {}, {}

-- Adds a task by its value, or as much of it as was read, if its state begins in there and says that it is ready.
local function add(id, value)
  local _, label, body = struct.unpack(LENGTHS, value)
  local state = LABEL_AT + label + body
  if string.sub(value, state, state) ~= READY then
    return false
  end
  found[#found + 1] = id
  found[#found + 1] = string.sub(value, LABEL_AT, LABEL_AT + label - 1)
  more = more - 1
  return true
end

-- The same for one whose value is large or damaged.
local function add_loaded(id)
  local task = load(id)
  if not task or task.broken or task.status ~= READY then
    return false, task and task.broken and task
  end
  local _, label = struct.unpack(LENGTHS, task.head)
  found[#found + 1] = id
  found[#found + 1] = string.sub(task.head, LABEL_AT, LABEL_AT + label - 1)
  more = more - 1
  return true
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
      if not (value and #value > LABEL_AT and add(entry[2][2], value)) then
        local is_ready, broken = add_loaded(entry[2][2])
        if not is_ready then
          call('XDEL', stream, entry[1])
        end
        if broken then
          end_unreadable(broken)
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
      heads[#heads + 1] = { at = tonumber(members[i + 1]), member = members[i], lane_key = lane_key }
    end
  end
  table.sort(heads, function(a, b)
    return a.at < b.at or a.at == b.at and a.member < b.member
  end)
  for i = 1, math.min(more, #heads) do
    local is_fair = string.sub(heads[i].lane_key, 1, 5) == 'fair:'
    local is_ready, broken = add_loaded(is_fair and string.sub(heads[i].member, 12) or heads[i].member)
    if not is_ready then
      off_sorted_lane(heads[i].lane_key, heads[i].member)
    end
    if broken then
      end_unreadable(broken)
    end
  end
end

local function look()
  local lanes, queues, is_asked = ARGV[at + 3], {}, {}
  for _, name in ipairs(call('HKEYS', KEY .. 'pauses')) do
    paused[name] = true
    paused_types[#paused_types + 1] = string.match(name, '^type:(.*)$')
  end
  for queue in string.gmatch(ARGV[at + 2], '[^\n]+') do
    if not paused['queue:' .. queue] and not is_asked[queue] then
      queues[#queues + 1], is_asked[queue] = queue, true
    end
  end
  for _, lane_key in ipairs(call('SMEMBERS', KEY .. 'aside')) do
    local place, lane, kind = string.match(lane_key, '^(%a+):([^/]*)/?(.*)$')
    if place == 'front' then
      fronts[lane] = lane_key
    elseif place == 'fair' then
      fairs[lane] = lane_key
    else
      local queue = string.match(lane, '^%a+:(.*)$')
      local name = queue .. '/' .. kind
      if is_asked[queue] then
        aside[#aside + 1] = name
        if string.find(lanes, '\n' .. name .. '\n', 1, true) then
          sides[lane] = sides[lane] or {}
          table.insert(sides[lane], lane_key)
        end
      end
    end
  end
  for _, band in ipairs({ 'high', 'normal', 'low' }) do
    for _, queue in ipairs(queues) do
      local lane = band .. ':' .. queue
      look_in_sorted({ fronts[lane] })
      look_in_sorted(sides[lane] or {})
      look_in_main(lane)
      look_in_sorted({ fairs[lane] })
    end
  end
end

if ARGV[at] then
  local free = 0
  for i = at + 4, #ARGV, 2 do
    local load_of_worker = call('ZCARD', leases_of(ARGV[i])) + call('ZCARD', KEY .. 'inbox:' .. ARGV[i])
    loads[#loads + 1] = load_of_worker
    free = free + math.max(tonumber(ARGV[i + 1]) - load_of_worker, 0)
  end
  more = free > 0 and math.min(free + tonumber(ARGV[at + 1]), tonumber(ARGV[at])) or 0
  look()
end
local queues = {}
for queue in pairs(woken) do
  queues[#queues + 1] = queue
end
return reply({ table.concat(answers), paused_types, aside, loads, found, queues })
