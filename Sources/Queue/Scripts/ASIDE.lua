#!lua flags=allow-oom
-- ASIDE: renames a key whose type is wrong and expires it after a week.
-- ARGV: name after the root, type it must have.
-- Result: 1; 0 if it has that type or does not exist.
-- Cost: O(1).
-- Again: 0.

local key = K .. ':' .. ARGV[1]
local is = redis.call('TYPE', key).ok
if is == 'none' or is == ARGV[2] then return 0 end
redis.call('RENAME', key, K .. ':aside:' .. ARGV[1])
redis.call('EXPIRE', K .. ':aside:' .. ARGV[1], 604800)
return 1
