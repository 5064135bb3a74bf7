-- What a task is made of, and where it waits.
--
-- A task is one string: lengths, label, body, state. Label and body are what was asked and never change; `records.py`
-- knows what they hold. Everything that changes is in the state, at the end, and is written in one piece; one that was
-- never claimed has the first part of it only.
local LENGTHS = '>I2I2I4' -- of the kind (the label's first lines: type, queue and band), the label, the body
local LABEL_AT = 9
local FRESH = '>c1BBBBI6I6I6I6'
local GLANCE = 1023 -- most tasks are read whole; of a larger one, never the payload
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

-- Ties of time go by the order of submits.
local function in_turn(seq, id)
  return string.format('%011x', seq) .. id
end
