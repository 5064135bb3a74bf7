-- flags: allow-oom
-- Remove indexes that are not kept any more. Arguments: their names. Reply: nothing.
for i = 3, INDEXED and 2 or #ARGV do
  call('UNLINK', KEY .. ARGV[i])
  call('SREM', KEY .. 'indexes', ARGV[i])
end
return reply(false)
