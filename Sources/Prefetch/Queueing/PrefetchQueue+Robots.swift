package import Redis
package import WebImage

extension PrefetchQueue {
    private static let askRobots = script(PackageResources.ROBOTS_lua)

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

    private static let tellRobots = script(PackageResources.PAGES_lua)

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
