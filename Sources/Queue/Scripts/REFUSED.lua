#!lua flags=allow-oom
-- REFUSED: a worker's own rules refuse URLs of its job. Tells of which that is the end: those that the rules of every
-- registered worker that works, not paused, in trouble or held, refuse.
-- ARGV: worker, claim, its rules as in its record, positions of the URLs in the job …
-- Result: the positions that end; none if the worker does not have the claim, or the batch is over.
-- Cost: O(workers + such URLs of the job).
-- Again: the same.

local worker, claim, mine = ARGV[1], ARGV[2], ARGV[3]:match('^%S+')
local id, _, _, nonce = parts(claim)
if redis.call('HEXISTS', own(worker), claim) == 0 or not isOf(id, nonce) then return {} end
if redis.call('HGET', batch(id), 'state') ~= 'running' then return {} end
-- They change when the worker meets a format without a library.
redis.call('HSET', K .. ':w:' .. worker, 'rules', ARGV[3])
local field, refused = jobOf(claim) .. '^', {}
for at, rules in (redis.call('HGET', tries(id), field) or ''):gmatch('(%d+) (%S+)\n') do
  refused[at] = refused[at] or {}
  refused[at][rules] = true
end
local others = otherRules(worker, mine)
local ended = {}
for i = 4, #ARGV do
  local at = ARGV[i]
  refused[at] = refused[at] or {}
  refused[at][mine] = true
  local isOver = true
  for rules in pairs(others) do isOver = isOver and refused[at][rules] end
  if isOver then ended[#ended + 1] = at end
end
local lines = {}
for at, all in pairs(refused) do
  for rules in pairs(all) do lines[#lines + 1] = at .. ' ' .. rules .. '\n' end
end
redis.call('HSET', tries(id), field, table.concat(lines))
return ended
