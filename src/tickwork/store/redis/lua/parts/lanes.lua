-- What a task is made of, and where it waits.
--
-- A task is one string: lengths, label, body, state. Label and body are what was asked and never change; `records.py`
-- knows what they hold. Everything that changes is in the state, at the end, and is written in one piece; one that was
-- never claimed has the first part of it only.
local LENGTHS = '>I2I2I4' -- of the kind (the label's first lines: type, queue and band), the label, the body
local LABEL_AT = 9
local FRESH = '>c1BBBBI6I6I6I6'
local GLANCE = 1023 -- most tasks are read whole; of a larger one, never the payload
local LEAP = 1000000 -- tasks that may have been submitted since the last one has ended
local ROOM = 256 -- behind the state of a larger one, so that it can grow in place: Redis doubles a string that grows

-- Tasks that come together are mostly of one kind. Nothing for a text that is none.
local kinds = {}

local function kind_of(head, size)
  local text = string.sub(head, LABEL_AT, LABEL_AT + size - 1)
  local kind = kinds[text]
  if not kind then
    local type, queue, band = string.match(text, '^([^%c\128-\255]+)\n([^%c\128-\255]+)\n([012])$')
    if not type then
      return nil
    end
    local lane = BANDS[band] .. ':' .. queue
    kind = { type = type, queue = queue, name = type .. '\n' .. queue, lane = lane, stream = KEY .. 'stream:' .. lane }
    kinds[text] = kind
  end
  return kind
end

local function to_stream(kind, position, id)
  if not call('XADD', kind.stream, 'NOMKSTREAM', position .. '-0', 'id', id) then
    call('SADD', KEY .. 'lanes', kind.lane)
    call('XADD', kind.stream, position .. '-0', 'id', id)
  end
end

-- The first of so many places in the order of lanes and ends; what is given out only grows. If the counter was lost, while
-- there are lanes or ends, it goes on from the time, which is far ahead of what any counter has reached.
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

-- Ties of time go by the order of submits.
local function in_turn(seq, id)
  return string.format('%011x', seq) .. id
end
