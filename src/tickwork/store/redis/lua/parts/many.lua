-- Scripts that are given many tasks answer a letter for each (or a text that begins with it), in their order, and then the
-- queues for which an idle worker is to be woken: with several partitions, the caller has to do that.
local MISSING = ' '

local function reply_each(answers)
  local answer = { answers }
  for queue in pairs(woken) do
    answer[#answer + 1] = queue
  end
  return reply(answer)
end
