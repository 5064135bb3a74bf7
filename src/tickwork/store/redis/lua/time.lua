-- flags: no-writes
-- Reply: the time now.
return reply(now)
