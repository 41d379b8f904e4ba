package import Redis
package import WebImage

extension PrefetchQueue {
    // ROBOTS: what is known of sites' robots.txt; where nothing is, the worker that asks first reads the file for all.
    // ARGV: worker, then each agent and site with a blank between. Result: for each {text, milliseconds it is kept}; {"", 0}: the worker
    // is to read it, and has half a minute in which no other is told so; {"?", 0}: another one does. Again: the same. Cost: O(sites).
    private static let askRobots = script(
        "ROBOTS",
        #"""
        local out, mine = {}, '?' .. ARGV[1]
        for i = 2, #ARGV do
          local key = K .. ':robots:' .. ARGV[i]
          local text = redis.call('GET', key)
          if text and text:sub(1, 1) ~= '?' then
            out[#out + 1] = {text, redis.call('PTTL', key)}
          -- Half a minute at most: where Redis' clock went back, the key stays for longer.
          elseif text and text ~= mine and redis.call('PTTL', key) <= 30000 then
            out[#out + 1] = {'?', 0}
          else
            redis.call('SET', key, mine, 'PX', 30000)
            out[#out + 1] = {'', 0}
          end
        end
        return out
        """#)

    /// What all workers know of sites' robots.txt, in the order of the sites.
    package func robots(of sites: [RobotsSite], worker: String) async throws(RedisError) -> [RobotsAnswer] {
        let reply =
            try await run(
                Self.askRobots, [RedisArgument(worker)] + sites.map { RedisArgument(Self.keyPart($0)) }
            ).array ?? []
        return reply.map { value in
            guard let parts = value.array, parts.count == 2, let text = parts[0].string, let left = parts[1].int else {
                return .ask
            }
            switch text {
            case "": return .ask
            case "?": return .wait
            default: return .known(text: text, remaining: Double(max(0, left)) / 1000)
            }
        }
    }

    // PAGES: what a worker has read of sites' robots.txt, for all.
    // ARGV: for each agent and site with a blank between, the text, milliseconds it is kept. Without a text nobody is told to wait any
    // more. Result: 1. Again: the same. Cost: O(sites).
    private static let tellRobots = script(
        "PAGES",
        #"""
        for i = 1, #ARGV, 3 do
          local key = K .. ':robots:' .. ARGV[i]
          if ARGV[i + 1] ~= '' then
            redis.call('SET', key, ARGV[i + 1], 'PX', ARGV[i + 2])
          elseif (redis.call('GET', key) or ''):sub(1, 1) == '?' then
            redis.call('DEL', key)
          end
        end
        return 1
        """#)

    /// Tells all workers what one has read.
    package func noteRobots(_ notes: [RobotsNote]) async throws(RedisError) {
        var arguments: [RedisArgument] = []
        for note in notes {
            arguments += [
                RedisArgument(Self.keyPart(note.site)), RedisArgument(note.text),
                RedisArgument(max(1, Int(note.lifetime * 1000))),
            ]
        }
        _ = try await run(Self.tellRobots, arguments)
    }

    private static func keyPart(_ site: RobotsSite) -> String {
        "\(site.agent.prefix(64).lowercased()) \(site.site.prefix(300))"
    }
}
