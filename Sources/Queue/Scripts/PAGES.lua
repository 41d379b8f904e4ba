#!lua flags=allow-oom
-- PAGES: stores the robots.txt that a worker has read, for all.
-- ARGV: (agent and site with a blank between, text, ms it is kept) of each site. Without a text only the "being read"
-- mark is removed.
-- Result: 1.
-- Cost: O(sites).
-- Again: the same.

for i = 1, #ARGV, 3 do
  local key = K .. ':robots:' .. ARGV[i]
  if ARGV[i + 1] ~= '' then
    redis.call('SET', key, ARGV[i + 1], 'PX', ARGV[i + 2])
  elseif (redis.call('GET', key) or ''):sub(1, 1) == '?' then
    redis.call('DEL', key)
  end
end
return 1
