-- A standing claim waits behind a blocking pop on a connection of its own, so it may run long after its worker wrote it: when the
-- worker is lost, or has asked for the answer again on another connection because this one was cut.
local REFUSED = -3 -- the reply to a standing claim whose worker may not be given anything by it

-- A list that only the standing claim of this worker waits for; no queue has a slash in its name.
local function own_wake_list(worker)
  return KEY .. 'wake:/' .. worker
end

-- Whether a claim was written before another one of the same process. Its nonces are a stem of 16 letters and a count in hex.
local function is_older(nonce, other)
  local count, newest = tonumber(string.sub(nonce, 17), 16), tonumber(string.sub(other, 17), 16)
  return string.sub(nonce, 1, 16) == string.sub(other, 1, 16) and count and newest and count < newest
end
