-- flags: allow-oom
-- parts: members
-- A worker says goodbye. Arguments: id.
if forget_worker(ARGV[3]) == 1 then
  tell('worker.left', ARGV[3], '\n', '', 0, 0, '')
end
return reply(1)
