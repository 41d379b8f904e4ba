-- How scripts/check reads the queue's scripts, which Redis runs with Lua 5.1.
std = "lua51"
read_globals = {"redis", "struct", "cjson", "cmsgpack", "KEYS", "ARGV"}
-- What the prelude names is there for every script.
for line in io.lines("Sources/Queue/Scripts/prelude.lua") do
  read_globals[#read_globals + 1] = line:match("^local function (%w+)") or line:match("^local (%w+)")
end
-- The shared files name what others use.
files["Sources/Queue/Scripts/prelude.lua"] = {ignore = {"211"}}
files["Sources/Queue/Scripts/step.lua"] = {ignore = {"211"}}
