#!lua flags=allow-oom
-- SWEEP: removes an element from the job list: an invalid job goes to the dead-letter list, a duplicate for good.
-- ARGV: batch, token, element, "1" if it is not a job.
-- Result: 1; 0 if it is not there.
-- Cost: O(jobs).
-- Again: 0.

-- luacheck: read globals id token mine (of step.lua)
if not mine() or redis.call('LREM', jobs(id), 1, ARGV[3]) == 0 then return 0 end
if ARGV[4] == '1' then bury(ARGV[3]) end
return 1
