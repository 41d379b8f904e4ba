#!lua flags=allow-oom
-- BURY: moves a claimed payload whose body is invalid (its checksum is wrong) to the dead-letter list.
-- ARGV: worker, nonce of its batch, first bytes of the payload.
-- Result: 1; 0 if the worker does not have the claim.
-- Cost: O(1).
-- Again: 0.

local name = ARGV[3]:match('^prefetch%-job [12] (%S+) ')
local claim = name and name .. '@' .. ARGV[2]
local payload = claim and redis.call('HGET', own(ARGV[1]), claim)
if not payload then return 0 end
bury(payload)
return redis.call('HDEL', own(ARGV[1]), claim)
