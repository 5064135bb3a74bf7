-- flags: allow-oom
-- layout: any
-- Move keys from the old prefix to this one as they are. Arguments: the old prefix, then the names of the keys. Reply: how many
-- were moved. A key that is there already was moved before.
local moved = 0
for i = 4, #ARGV do
  if call('EXISTS', ARGV[3] .. ARGV[i]) == 1 then
    call('RENAME', ARGV[3] .. ARGV[i], KEY .. ARGV[i])
    moved = moved + 1
  end
end
return reply(moved)
