-- flags: allow-oom
-- parts: lanes records homes pulse claiming
-- Take work: ready -> running. Arguments: a wish. Reply: milliseconds until more may be found (-1: unknown), then id and
-- value of each task taken. The same nonce sent again gets the same batch.
return reply(claim(wish_of(3)))
