-- flags: allow-oom
-- Remove indexes that are not kept any more. Arguments: their names. Reply: 1, or 0 when they are kept again.
if INDEXED then
  return reply(0)
end
for i = 3, #ARGV do
  call('UNLINK', KEY .. ARGV[i])
  call('SREM', KEY .. 'indexes', ARGV[i])
end
return reply(1)
