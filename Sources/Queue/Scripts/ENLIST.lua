#!lua
-- ENLIST: adds URLs to the list of failed URLs by hand. Their metadata is deleted: without a date they never expire.
-- ARGV: URLs, at least one.
-- Result: how many were not on it.
-- Cost: O(URLs × log failed URLs).
-- Again: 0.

strip(ARGV)
return redis.call('SADD', K .. ':failed', unpack(ARGV))
