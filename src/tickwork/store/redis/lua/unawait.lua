-- flags: allow-oom
-- parts: homes ends
-- A task of another partition was told. Arguments: upstream, dependant.
unawait(ARGV[3], ARGV[4])
return reply(1)
