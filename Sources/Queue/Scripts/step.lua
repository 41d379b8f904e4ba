-- What every step of a repair begins with, behind the prelude.

local id, token = ARGV[1], ARGV[2]
-- Whether the repair is still this caller's; it is for another minute then.
local function mine()
  local held = redis.call('HGET', batch(id), 'repair')
  if not held or held:sub(1, #token + 1) ~= token .. ' ' then return false end
  redis.call('HSET', batch(id), 'repair', token .. ' ' .. (now() + 60000))
  return true
end
