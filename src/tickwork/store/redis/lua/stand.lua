-- flags: allow-oom
-- parts: lanes records homes pulse claiming standing
-- A standing claim: what `claim.lua` does, run by the server itself when a blocking pop before it has ended. Arguments and reply
-- are those of `claim.lua`, and -3 for a claim that is refused. It is no sign that anybody can reach the store, so it does not
-- count as a call (see `pulse`).
local claim = claim_of(3)
local last = call('HGET', KEY .. 'claims', claim.turn)
local answered = last and string.match(last, '^%S*') or ''

-- A worker that is lost, or whose place another process has taken, would keep tasks that nobody runs until their lease ends. After
-- the clock was set back, leases are only given once they have been moved with it.
local function may_be_granted()
  local expires_at = call('ZSCORE', KEY .. 'workers:online', claim.worker)
  local pulse_at = tonumber(string.match(call('GET', KEY .. 'pulse') or '', '^%d+')) or 0
  return expires_at and tonumber(expires_at) > now and pulse_at <= now
    and call('HGET', KEY .. 'workers:nodes', claim.worker) == claim.process and not is_older(claim.nonce, answered)
end

local function give_token_on()
  for _, queue in ipairs(claim.queues) do
    woken[queue] = true
  end
end

if answered == claim.nonce then -- it was asked for over another connection
  give_token_on()
  return reply(replay(claim, last))
end
if not may_be_granted() then
  give_token_on()
  return reply({ REFUSED })
end
return reply(grant_new(claim))
