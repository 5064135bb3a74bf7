-- flags: allow-oom
-- layout: any
-- Begin to move a namespace from the layout before to this one, or go on with it. Arguments: this layout, the prefix of the
-- layout before, and its version. Reply: 1, or 0 when there is nothing to move.
--
-- From here on nodes of the older version do nothing more: their scripts find no task under the old prefix, a key of the wrong
-- type where they look at the time and at positions, and another layout than their own; and they are refused when they connect.
local before = ARGV[4]
local old, meta = before .. 'meta', KEY .. 'meta'
local version = call('HGET', old, 'version')
local half_way = ARGV[5] .. '>' .. ARGV[3]
if call('HGET', meta, 'version') == ARGV[3] or version ~= ARGV[5] and version ~= ARGV[3] then
  return reply(0)
end
if call('EXISTS', meta) == 0 then
  -- First what the user of an older version may not: nothing has changed when it is refused.
  for _, name in ipairs({ 'pulse', 'position' }) do
    if call('EXISTS', before .. name) == 1 then
      call('RENAME', before .. name, KEY .. name)
    end
    call('HSET', before .. name, 'layout', ARGV[3])
  end
  for _, field in ipairs({ 'partitions', 'epoch', 'clock_back', 'server' }) do
    local value = call('HGET', old, field)
    if value then
      call('HSET', meta, field, value)
    end
  end
  call('HSET', meta, 'version', half_way)
  call('HSET', old, 'version', ARGV[3])
  call('DEL', before .. 'layout')
end
return reply(1)
