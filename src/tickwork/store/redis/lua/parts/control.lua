-- The prefix of what a server keeps beside the tasks: `control_prefix` in `keys.py`.
local CONTROL = KEYS[2]
