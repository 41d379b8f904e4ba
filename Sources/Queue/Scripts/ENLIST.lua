#!lua
-- ENLIST: puts URLs onto the list of failed URLs by hand. What stood beside one of them goes: without a date it lapses
-- for nobody.
-- ARGV: URLs, at least one.
-- Result: how many were not on it.
-- Cost: O(URLs × log failed URLs).
-- Again: 0.

strip(ARGV)
return redis.call('SADD', K .. ':failed', unpack(ARGV))
