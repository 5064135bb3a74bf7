-- The layout of the keys that this script knows. Every script but those that open a namespace checks it, so that a node of this
-- version writes nothing once a newer one has migrated the namespace, or the server has come back without its data. An `i`
-- behind it says that lists are indexed, a `b` that the indexes are being built: new tasks are added, older ones are not all.
local LAYOUT = '3'
local stored = redis.call('GET', KEYS[1] .. 'layout')
local INDEXED = stored ~= LAYOUT and (stored == LAYOUT .. 'i' or stored == LAYOUT .. 'b')
if stored ~= LAYOUT and not INDEXED then
  return redis.error_reply('LAYOUT ' .. (stored or 'none'))
end
