-- parts: lanes
-- Create tasks without options: (none) -> ready or pending. Arguments, for each: id, lengths + label + body, '' or (msgpack) its
-- time, `at` or `delay`, the channel on which its end is to be published, `watch`, and `body`: the argument then ends with the
-- label, and the whole value was written before, to the key `incoming:<body>`. Reply: the indexes (from 0) of those that
-- were not created, since there is a task of that id; the caller sends those to `submit_with` to find out more. Nearly all tasks come this way, so this script has no functions of its
-- own: Lua would create them anew with every call.
local WIDTH = 3
local position = positions((#ARGV - 2) / WIDTH) - 1
local some_awaited = call('EXISTS', KEY .. 'awaited') == 1
local delayed, known = {}, {}

for at = 3, #ARGV, WIDTH do
  local id, spec, due_at, watch, incoming = ARGV[at], ARGV[at + 1], now, nil, nil
  if ARGV[at + 2] ~= '' then
    local options = cmsgpack.unpack(ARGV[at + 2])
    due_at, watch = math.max(options.at or now + (options.delay or 0), 0), options.watch
    incoming = options.body and KEY .. 'incoming:' .. options.body
  end
  position = position + 1
  local status = due_at > now and PENDING or READY
  local awaited = some_awaited and call('SISMEMBER', KEY .. 'awaited', id) or 0
  local state = struct.pack(FRESH, status, 0, awaited, watch and 1 or 0, MAIN, position, now, due_at, position)
  local created
  if incoming then
    created = call('EXISTS', incoming) == 1 and call('RENAMENX', incoming, TASK .. id) == 1
  else
    local value = spec
    if #spec <= LARGE then -- a large one came with room for its state
      value = spec .. state
      if #value > GLANCE then
        value = value .. string.rep('\0', ROOM)
      end
    end
    created = call('SET', TASK .. id, value, 'NX')
  end
  if created then
    local kind = kind_of(spec, (struct.unpack(LENGTHS, spec)))
    if incoming then
      call('PERSIST', TASK .. id)
    end
    if incoming or #spec > LARGE then
      call('SETRANGE', TASK .. id, size_of(spec), state)
    end
    if watch then
      call('HSET', KEY .. 'watchers', id, watch)
    end
    if INDEXED then
      to_indexes(kind, spec, position, id)
    end
    if status == READY then
      to_stream(kind, position, id, size_of(spec))
    else
      delayed[#delayed + 1] = due_at
      delayed[#delayed + 1] = in_turn(position, id)
    end
    woken[kind.queue] = true -- also for a delayed task: a worker has to learn when it is due
    log_fact('task.submitted', id, kind.name, '', 0, 0, '')
  else
    known[#known + 1] = (at - 3) / WIDTH
    if incoming then
      call('DEL', incoming)
    end
  end
end

in_slices('ZADD', KEY .. 'delayed', delayed)
return reply(known)
