-- parts: lanes records homes waiting dedup creating
-- Create tasks with options: (none) -> ready, pending or blocked. Arguments as for `submit`; the third one (msgpack) may also
-- have a dedup key and its time, dependencies, and whether a schedule fired it. Reply: for each '' (created), 'e' (another task
-- has this id), 'd<id>' (that task holds the dedup key) or 'o<id>' (it depends on that task, which does not exist).
return reply(create_all(3))
