#!lua flags=allow-oom
-- FAILURE: how a download ended that other processes of its machine waited for, kept for 5 s.
-- ARGV: digest of what was asked for, and how; how it ended ("": only asks).
-- Result: how it ended; "" if that is not known.
-- Cost: O(1).
-- Again: the same.

local key = K .. ':failure:' .. ARGV[1]
if ARGV[2] ~= '' then redis.call('SET', key, ARGV[2], 'PX', 5000) end
return redis.call('GET', key) or ''
