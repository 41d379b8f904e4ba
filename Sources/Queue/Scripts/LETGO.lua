#!lua flags=allow-oom
-- LETGO: releases the hold of a batch; its jobs are claimed again.
-- ARGV: batch, token.
-- Result: 1.
-- Cost: O(1).
-- Again: the same.

-- luacheck: read globals id token mine (of step.lua)
redis.call('HDEL', K .. ':held', id)
if redis.call('LLEN', jobs(id)) > 0 then ready(id) end
return 1
