#!lua flags=allow-oom
-- MARK: the one URL of this job is about to be decoded, with nothing else in flight: it is to blame if the worker dies.
-- ARGV: worker, claim ("" removes the mark).
-- Result: 1; 0 if the worker does not have the claim, or there is no mark.
-- Cost: O(1).
-- Again: the same.

if ARGV[2] == '' then return redis.call('HDEL', own(ARGV[1]), '#mark') end
if redis.call('HEXISTS', own(ARGV[1]), ARGV[2]) == 0 then return 0 end
redis.call('HSET', own(ARGV[1]), '#mark', ARGV[2])
return 1
