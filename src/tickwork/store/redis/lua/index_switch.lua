-- flags: allow-oom
-- Keep the indexes of lists from now on, say that they are complete, or stop keeping them. Arguments: 'b' (they are kept, and are
-- being built), 'i' (they are built) or '' (they are not kept). Reply: 1 if that is a change.
local state = LAYOUT .. ARGV[3]
if stored == state or ARGV[3] == 'b' and INDEXED or ARGV[3] == 'i' and not INDEXED then
  return reply(0)
end
call('SET', KEY .. 'layout', state)
return reply(1)
