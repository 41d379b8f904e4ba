#!lua
-- ENLIST: adds URLs to the blacklist by hand. Their details are deleted: without a date they never expire.
-- ARGV: URLs, at least one.
-- Result: how many were not on it.
-- Cost: O(URLs × log failed URLs).
-- Again: 0.

strip(ARGV)
return redis.call('SADD', K .. ':failed', unpack(ARGV))
