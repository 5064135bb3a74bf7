-- parts: lanes records homes waiting dedup creating
-- Create tasks, plain or not: (none) -> ready, pending or blocked. Arguments as for `submit`; of one that is not plain the
-- options also hold dedup key and its time, dependencies, whether it has a schedule. Reply: for each '' (created), 'e' (the
-- id is another's), 'd<id>' (that one holds the dedup key) or 'o<id>' (it depends on that one, which is not there).
return reply(create_all(3))
