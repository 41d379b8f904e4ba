#!lua flags=allow-oom
-- ROBOTS: stored robots.txt of sites; the first worker to ask for an unknown one reads the file for all.
-- ARGV: worker, then each agent and site with a blank between.
-- Result: (text, ms it is kept) of each; `"" 0`: this worker is to read it, within half a minute; `? 0`: another one
-- does.
-- Cost: O(sites).
-- Again: the same.

local out, mine = {}, '?' .. ARGV[1]
for i = 2, #ARGV do
  local key = K .. ':robots:' .. ARGV[i]
  local text = redis.call('GET', key)
  if text and text:sub(1, 1) ~= '?' then
    out[#out + 1] = {text, redis.call('PTTL', key)}
  -- Half a minute at most: if Redis' clock went back, the key lives longer.
  elseif text and text ~= mine and redis.call('PTTL', key) <= 30000 then
    out[#out + 1] = {'?', 0}
  else
    redis.call('SET', key, mine, 'PX', 30000)
    out[#out + 1] = {'', 0}
  end
end
return out
