#!lua flags=allow-oom
-- SWEEP: an element leaves the job list: to the list of the dead where it is no job, for good where its URLs are in
-- another job.
-- ARGV: batch, token, element, "1" where it is no job.
-- Result: 1; 0 where it is not there (any more).
-- Cost: O(jobs).
-- Again: 0.

-- luacheck: read globals id token mine (of step.lua)
if not mine() or redis.call('LREM', jobs(id), 1, ARGV[3]) == 0 then return 0 end
if ARGV[4] == '1' then bury(ARGV[3]) end
return 1
