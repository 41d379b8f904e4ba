#!lua flags=allow-oom
-- ASIDE: a key of another type than the queue's gets another name, and goes after a week.
-- ARGV: name behind the root, type it must have.
-- Result: 1; 0 where it is of that type or not there.
-- Cost: O(1).
-- Again: 0.

local key = K .. ':' .. ARGV[1]
local is = redis.call('TYPE', key).ok
if is == 'none' or is == ARGV[2] then return 0 end
redis.call('RENAME', key, K .. ':aside:' .. ARGV[1])
redis.call('EXPIRE', K .. ':aside:' .. ARGV[1], 604800)
return 1
