-- flags: allow-oom
-- parts: lanes records homes pulse claiming
-- Grant ready tasks to a worker: ready -> running. Arguments: a claim, see `claim_of`. Reply: milliseconds until another claim
-- may find more (-1: nothing is delayed; -2: nothing is granted before `promote` has cancelled overdue tasks), then id and value
-- of each task. The value of a large task is empty: the caller reads it. A claim sent again gets the same tasks.
return reply(grant(claim_of(3)))
