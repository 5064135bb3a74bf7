-- flags: allow-oom
-- parts: members
-- Keep an order for a member, or take it back; those of other kinds stay. Arguments: id, kind, the word (`drain`,
-- `capacity=20`) or ''. Reply: 1, or 0 when there is no such member or it is lost.
local id, kind, word = ARGV[3], ARGV[4], ARGV[5]
if #times_of(id) ~= 3 then
  return reply(0)
end
local before = call('HGET', KEY .. 'workers:orders', id) or ''
local words = {}
for each in string.gmatch(before, '%S+') do
  if string.match(each, '^[^=]*') ~= kind then
    words[#words + 1] = each
  end
end
if word ~= '' then
  words[#words + 1] = word
end
table.sort(words)
local order = table.concat(words, ' ')
if before ~= order then
  if order == '' then
    call('HDEL', KEY .. 'workers:orders', id)
  else
    call('HSET', KEY .. 'workers:orders', id, order)
  end
  log_fact('worker.ordered', id, '\n', '', 0, 0, order == '' and 'none' or order)
  call('PUBLISH', CHANNEL .. 'control', id) -- names the worker: others ignore it
end
return reply(1)
