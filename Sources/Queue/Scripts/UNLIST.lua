#!lua flags=allow-oom
-- UNLIST: takes URLs off the blacklist, and deletes their details.
-- ARGV: URLs, at least one.
-- Result: how many were on it.
-- Cost: O(URLs × log failed URLs).
-- Again: 0.

return unlist(ARGV)
