internal import Redis
internal import Threading
internal import WebImage

/// Exchanges knowledge of hosts and sites between the downloader and Redis: one call for all of them, and none while there is neither a
/// limit nor a rate nor trouble nor a new site. The downloader's `HostGovernor` has the rules for hosts.
///
/// Confined to the worker's executor.
final class HostLoop {
    private let worker: WorkerContext
    /// Version of the host notes it has read.
    private(set) var version: Int?

    init(_ worker: WorkerContext) { self.worker = worker }

    nonisolated(nonsending) func run() async {
        let (redis, downloader) = (worker.redis, worker.manager.downloader)
        while !Task.isCancelled, let calls = await downloader.nextHostMessages() {
            if !calls.news.isEmpty {
                await redis.persist { queue async throws(RedisError) in try await queue.hosts.note(calls.news) }
            }
            if !calls.rules.isEmpty {
                await redis.persist { queue async throws(RedisError) in try await queue.hosts.noteRobots(calls.rules) }
            }
            let name = worker.registration.name
            if !calls.sites.isEmpty {
                let answers = await redis.persist { queue async throws(RedisError) in
                    try await queue.hosts.robots(of: calls.sites, worker: name)
                }
                // If Redis rejects the command itself, each worker asks the sites itself.
                await downloader.grantRobots(Self.pair(calls.sites, answers).map { ($0, $1 ?? .ask) })
            }
            if !calls.shares.isEmpty {
                let granted = await redis.persist { queue async throws(RedisError) in
                    try await queue.hosts.share(calls.shares, worker: name)
                }
                await downloader.grantShares(Self.pair(calls.shares, granted).map { ($0.host, $1 ?? nil) })
            }
            if !calls.hostRequests.isEmpty {
                let granted = await redis.persist { queue async throws(RedisError) in
                    try await queue.hosts.reserve(calls.hostRequests)
                }
                await downloader.grant(Self.pair(calls.hostRequests, granted).map { ($0.host, $1 ?? nil) })
            }
        }
    }

    /// Reads other workers' host notes if a heartbeat returned a new version.
    nonisolated(nonsending) func learn(_ newest: Int?) async {
        let downloader = worker.manager.downloader
        guard let newest, newest != version, await downloader.governsHosts else { return }
        let hosts = await worker.redis.persist { queue async throws(RedisError) in try await queue.hosts.troubled() }
        guard let hosts else { return }
        version = newest
        await downloader.adoptHosts(hosts.map(\.news))
    }

    private static func pair<Question, Answer>(
        _ questions: [Question], _ answers: [Answer]?
    ) -> [(Question, Answer?)] {
        questions.enumerated().map { index, question in
            (question, answers.flatMap { index < $0.count ? $0[index] : nil })
        }
    }
}
