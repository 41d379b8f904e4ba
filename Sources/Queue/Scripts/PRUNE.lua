#!lua flags=allow-oom
-- PRUNE: removes details of URLs that were not skipped, and those beyond the batch's limit.
-- ARGV: batch, token, most details, indices …
-- Result: details removed.
-- Cost: O(indices).
-- Again: 0.

-- luacheck: read globals id token mine (of step.lua)
local n = 0
for i = 4, #ARGV do
  local code = redis.call('GETRANGE', outcomes(id), ARGV[i], ARGV[i]):byte() or 0
  if code < 4 or redis.call('HLEN', skipped(id)) > tonumber(ARGV[3]) then
    n = n + redis.call('HDEL', skipped(id), ARGV[i])
  end
end
return n
