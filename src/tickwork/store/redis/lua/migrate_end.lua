-- flags: allow-oom
-- layout: any
-- All keys are moved: the namespace may be used. Arguments: the layout, the old prefix, then names of old keys that are not
-- needed any more. Reply: nothing.
for i = 5, #ARGV do
  call('DEL', ARGV[4] .. ARGV[i])
end
call('HSET', KEY .. 'meta', 'version', ARGV[3])
call('SET', KEY .. 'layout', ARGV[3], 'NX')
return reply(false)
