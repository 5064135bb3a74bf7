-- The server's time in milliseconds. Tests replace this file by a clock that they set.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
