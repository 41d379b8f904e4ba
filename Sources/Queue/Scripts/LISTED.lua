#!lua flags=allow-oom
-- LISTED: which of these URLs are on the list of failed ones. Entries older than the caller's time to live expire here,
-- as do those past the time to live of the batch that listed them.
-- ARGV: time to live in ms (0 = forever), URLs that SMISMEMBER has found.
-- Result: (position among these from 0, metadata of the entry) of each that is on it.
-- Cost: O(URLs), and log failed URLs for each that expires.
-- Again: the same.

local found = redis.call('SMISMEMBER', K .. ':failed', unpack(ARGV, 2))
local ttl, t, out = tonumber(ARGV[1]), now(), {}
local places, urls = {}, {}
for i, member in ipairs(found) do
  if member == 1 then
    places[#places + 1] = i - 1
    urls[#urls + 1] = ARGV[i + 1]
  end
end
if #urls == 0 then return out end
local ends, gone = redis.call('ZMSCORE', K .. ':failed:lapses', unpack(urls)), {}
for i, meta in ipairs(redis.call('HMGET', K .. ':failed:meta', unpack(urls))) do
  local last = tonumber(meta and meta:match('^%d+ (%d+) ') or '')
  if ttl > 0 and last and t - last > ttl or ends[i] and tonumber(ends[i]) < t then
    gone[#gone + 1] = urls[i]
  else
    out[#out + 1] = tostring(places[i])
    out[#out + 1] = meta or ''
  end
end
if #gone > 0 then unlist(gone) end
return out
