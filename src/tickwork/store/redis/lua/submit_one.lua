-- prelude: none
-- Create one task without options that is to run at once: (none) -> ready. This is what a caller sends who submits one task
-- after another, so it does without the prelude and its functions, and the caller has made what depends on the type and the
-- queue alone. It writes the same as `submit`; a test compares them. Arguments: prefix of the channels, number of facts to
-- keep, id, lengths + label + body, lane, queue, the fact ('' for none), the channel on which its end is to be published (''
-- for none), and with several partitions the number of logs and of this log. Reply: 1; or 0 if nothing was changed, and the
-- task is to be sent to `submit`: there is a task of that id, or the counters begin.
local SPAN, GLANCE, ROOM = 1048576, 1023, 256 -- as in `prelude.lua` and `lanes.lua`
local call, KEY, id, spec, fact, logs = redis.call, KEYS[1], ARGV[3], ARGV[4], ARGV[7], ARGV[9]
local watch = ARGV[8]
local now = clock()

local position = call('INCR', KEY .. 'position')
if position == 1 then
  call('DEL', KEY .. 'position')
  return 0
end
local last
if fact ~= '' and not logs then
  last = call('INCR', KEY .. 'facts')
  if last < SPAN then
    call('DEL', KEY .. 'facts')
    call('INCRBY', KEY .. 'position', -1)
    return 0
  end
end

local awaited = call('SISMEMBER', KEY .. 'awaited', id)
local value = spec .. struct.pack('>c1BBBBI6I6I6I6', 'r', 0, awaited, watch ~= '' and 1 or 0, 2, position, now, now, position)
if #value > GLANCE then
  value = value .. string.rep('\0', ROOM)
end
if not call('SET', KEY .. 'task:' .. id, value, 'NX') then
  call('INCRBY', KEY .. 'position', -1)
  if last then
    call('INCRBY', KEY .. 'facts', -1)
  end
  return 0
end

if watch ~= '' then
  call('HSET', KEY .. 'watchers', id, watch)
end
local stream, place = KEY .. 'stream:' .. ARGV[5], position .. '-0'
if not call('XADD', stream, 'NOMKSTREAM', place, 'id', id) then
  call('SADD', KEY .. 'lanes', ARGV[5])
  call('XADD', stream, place, 'id', id)
end

if INDEXED then
  local size = struct.unpack('>I2', spec, 3)
  local type, queue, key_size, keys = string.match(string.sub(spec, 9, 8 + size),
    '^([^\n ]*)[^\n]*\n([^\n]*)\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n(%d+):(.*)$')
  local names = { 'index:all', 'index:type:' .. type, 'index:queue:' .. queue }
  if key_size ~= '0' then
    names[4] = 'index:key:' .. string.sub(keys, 1, tonumber(key_size))
  end
  for _, name in ipairs(names) do
    if call('ZADD', KEY .. name, position, id) == 1 and call('ZCARD', KEY .. name) == 1 then
      call('SADD', KEY .. 'indexes', name)
    end
  end
end

if fact ~= '' then
  if logs then
    last = math.max(tonumber(call('GET', KEY .. 'facts') or 0), math.floor(now * SPAN / 1000 / logs)) + 1
    call('SET', KEY .. 'facts', string.format('%.0f', last))
    last = last * logs + ARGV[10]
  end
  local cut, limit = 'MAXLEN', ARGV[2]
  if not logs and last % SPAN >= tonumber(ARGV[2]) then
    cut, limit = 'MINID', string.format('%.0f', last - ARGV[2] + 1)
  end
  call('XADD', KEY .. 'events', cut, '~', limit, string.format('%.0f-0', last), 'at', string.format('%.0f', now),
    'facts', fact)
  call('PUBLISH', ARGV[1] .. 'events', '')
end

local wake = KEY .. 'wake:' .. ARGV[6]
if not logs and call('LLEN', wake) == 0 then
  call('RPUSH', wake, '1')
end
return 1
