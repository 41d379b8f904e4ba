#!lua flags=allow-oom
-- REMOVE: deletes every key of a batch that is over; a batch it retried loses the link, and its own `keep` starts now.
-- Images and entries in the blacklist stay.
-- ARGV: batch, "1" to delete it whatever its state, also what is left of one, whatever the types of its keys.
-- Result: `OK`, `GONE`, `RUNNING`, or `RETRIED` and by which.
-- Cost: O(1), the memory is freed in the background.
-- Again: `GONE`.

local id = ARGV[1]
if ARGV[2] == '1' then return {erase(id) > 0 and 'OK' or 'GONE'} end
local m = redis.call('HMGET', batch(id), 'state', 'retried_by')
if m[1] == 'running' then return {'RUNNING'} end
if m[2] and redis.call('HGET', batch(m[2]), 'retry_of') == id then return {'RETRIED', m[2]} end
return {erase(id) > 0 and m[1] and 'OK' or 'GONE'}
