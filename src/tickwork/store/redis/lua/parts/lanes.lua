-- The format of a task's value, and the main lanes in which ready tasks wait.
--
-- A task is one string: lengths, label, body, state (`docs/redis-records.md`). Label and body say what was submitted and
-- never change. Everything that changes is in the state, at the end of the string, which is written in one piece. A task
-- that was never claimed has only the first part of the state.
local LENGTHS = '>I2I2I4' -- of the label's first three lines (kind, queue, band), of the label, of the body
local LABEL_AT = 9
local FRESH = '>c1BBBBI6I6I6I6'
local GLANCE = 1023 -- values up to this size are read whole; of a larger one, the payload is not read
local LARGE = 16384 -- a label and body of more bytes do not travel through scripts again: the worker reads them itself
local LEAP = 1000000 -- positions to leave out after a lost counter: more than can be in the lanes beyond the newest end
local ROOM = 256 -- spare bytes behind the state of a larger value: without them Redis would double a string that grows

-- Kind, type, queue, band and lane, and of a task of a fair queue its cost in virtual time, read from the first lines of the label; nil if those cannot be read. They are kept, since the
-- tasks of one call are mostly of one kind. The kind is the type and, behind a space, what else a worker needs to run the task.
local kinds = {}

local function kind_of(head, size)
  local text = string.sub(head, LABEL_AT, LABEL_AT + size - 1)
  local kind = kinds[text]
  if not kind then
    local starts, queue, band, cost = string.match(text, '^([^%c\128-\255]+)\n([^%c\128-\255]+)\n([012]) ?(%d*)$')
    if not starts then
      return nil
    end
    local type = string.match(starts, '^[^ ]*')
    local lane = BANDS[band] .. ':' .. queue
    kind = { starts = starts, type = type, queue = queue, band = band, name = type .. '\n' .. queue, lane = lane, stream = KEY .. 'stream:' .. lane,
      fair = tonumber(cost) }
    kinds[text] = kind
  end
  return kind
end

-- The entry of a large task is named `large`, so that a claim does not read its payload.
local function to_stream(kind, position, id, size)
  local field = size > LARGE and 'large' or 'id'
  if not call('XADD', kind.stream, 'NOMKSTREAM', position .. '-0', field, id) then
    call('SADD', KEY .. 'lanes', kind.lane)
    call('XADD', kind.stream, position .. '-0', field, id)
  end
end

-- The bytes of lengths, label and body, behind which the state begins.
local function size_of(spec)
  local _, label, body = struct.unpack(LENGTHS, spec)
  return LABEL_AT - 1 + label + body
end

-- Indexes of lists, while they are kept: all tasks, and those of a type, queue or key, by the order of submits.
local function indexes_of(kind, spec)
  local names = { 'index:all', 'index:type:' .. kind.type, 'index:queue:' .. kind.queue }
  local _, label = struct.unpack(LENGTHS, spec)
  local size, keys = string.match(string.sub(spec, LABEL_AT, LABEL_AT + label - 1),
    '^[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n(%d+):(.*)$')
  if size and size ~= '0' then
    names[#names + 1] = 'index:key:' .. string.sub(keys, 1, tonumber(size))
  end
  return names
end

local function to_indexes(kind, spec, seq, id)
  for _, name in ipairs(indexes_of(kind, spec)) do
    if call('ZADD', KEY .. name, seq, id) == 1 and call('ZCARD', KEY .. name) == 1 then
      call('SADD', KEY .. 'indexes', name)
    end
  end
end

-- Reserves `count` positions in the order of lanes and ends, and returns the first. Positions only grow. If the counter was
-- lost while there are lanes or ends, it goes on from the current time in milliseconds, which no counter has reached.
local function positions(count)
  local last = call('INCRBY', KEY .. 'position', count)
  if last == count then
    local ends = KEY .. 'ended:'
    if call('EXISTS', KEY .. 'lanes', ends .. 'success', ends .. 'failed', ends .. 'dead', ends .. 'cancelled') > 0 then
      for _, status in pairs(ENDS) do
        local newest = call('XREVRANGE', ends .. status, '+', '-', 'COUNT', 1)[1]
        last = math.max(last, newest and tonumber(string.match(newest[1], '^%d+')) or 0)
      end
      last = math.max(last + LEAP, now) + count
      call('SET', KEY .. 'position', whole(last))
    end
  end
  return last - count + 1
end

-- A member of `delayed` or `retrying`. Tasks that are due at the same time are ordered by their submits.
local function in_turn(seq, id)
  return string.format('%011x', seq) .. id
end
