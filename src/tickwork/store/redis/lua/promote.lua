-- flags: allow-oom
-- parts: lanes records homes claiming
-- Move due tasks to their lanes: pending, retrying -> ready. Arguments: limit. Reply: milliseconds until the next is due, or -1.
return reply(promote(tonumber(ARGV[3])))
