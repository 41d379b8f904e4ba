#!lua flags=allow-oom
-- CANCEL: ends a batch now. Its open URLs read as `cancelled` from then on; the total stays as far as it is known. Of
-- its keys those of a wrong type are deleted; a batch whose hash is gone or of a wrong type is deleted altogether.
-- ARGV: batch.
-- Result: the state it had, `broken` if it is deleted, nil if there is no such batch.
-- Cost: O(1), and the deletion of its job list.
-- Again: changes nothing.

local id = ARGV[1]
local state = redis.pcall('HGET', batch(id), 'state')
if type(state) ~= 'string' then return erase(id) > 0 and 'broken' end
if state == 'running' then
  for _, read in ipairs({{'STRLEN', outcomes(id)}, {'HLEN', counts(id)}, {'HLEN', skipped(id)}, {'HLEN', records(id)},
      {'HLEN', hosts(id)}, {'HLEN', batch(id) .. ':refused'}, {'STRLEN', places(id)}, {'HLEN', caches(id)}}) do
    if type(redis.pcall(unpack(read))) == 'table' then redis.call('UNLINK', read[2]) end
  end
  redis.call('HDEL', batch(id), 'broken')
  close(id, 'cancelled', 'hand')
end
return state
