-- flags: allow-oom
-- parts: homes claiming
-- Move what is due: pending, retrying -> ready. Arguments: limit. Reply: milliseconds until the next is due, or -1.
promote(tonumber(ARGV[3]))
return reply(next_due_in())
