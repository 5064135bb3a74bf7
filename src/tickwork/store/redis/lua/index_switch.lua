-- flags: allow-oom
-- Keep the indexes of lists from now on, or stop keeping them. Arguments: 1 or 0. Reply: 1 if that is a change.
if INDEXED == (ARGV[3] == '1') then
  return reply(0)
end
call('SET', KEY .. 'layout', LAYOUT .. (ARGV[3] == '1' and 'i' or ''))
return reply(1)
