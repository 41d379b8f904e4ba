-- Prepended to every step of a repair, after the prelude.

local id, token = ARGV[1], ARGV[2]
-- Whether the caller still owns the repair; if so, extends it by a minute.
local function mine()
  local held = redis.call('HGET', batch(id), 'repair')
  if not held or held:sub(1, #token + 1) ~= token .. ' ' then return false end
  redis.call('HSET', batch(id), 'repair', token .. ' ' .. (now() + 60000))
  return true
end
