internal import Redis
internal import Threading
internal import WebImage

/// Asks and tells Redis what the downloader wants to know and has to say of hosts and sites: one call for all of them, and none while there is
/// neither a limit nor a rate nor trouble nor a new site. The rules of hosts are the downloader's: `HostGovernor`.
///
/// Confined to the worker's executor.
final class HostLoop {
    private let worker: WorkerContext
    /// The news of hosts it has heard.
    private(set) var version: Int?

    init(_ worker: WorkerContext) { self.worker = worker }

    nonisolated(nonsending) func run() async {
        let (redis, downloader) = (worker.redis, worker.manager.downloader)
        while !Task.isCancelled, let calls = await downloader.nextHostCalls() {
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
                // Where Redis takes the question itself for wrong, each asks for itself.
                await downloader.grantRobots(Self.pair(calls.sites, answers).map { ($0, $1 ?? .ask) })
            }
            if !calls.shares.isEmpty {
                let granted = await redis.persist { queue async throws(RedisError) in
                    try await queue.hosts.share(calls.shares, worker: name)
                }
                await downloader.grantShares(Self.pair(calls.shares, granted).map { ($0.host, $1 ?? nil) })
            }
            if !calls.wishes.isEmpty {
                let granted = await redis.persist { queue async throws(RedisError) in
                    try await queue.hosts.reserve(calls.wishes)
                }
                await downloader.grant(Self.pair(calls.wishes, granted).map { ($0.host, $1 ?? nil) })
            }
        }
    }

    /// Learns what others found out about hosts, where a heartbeat brought the news that they did.
    nonisolated(nonsending) func learn(_ newest: Int?) async {
        let downloader = worker.manager.downloader
        guard let newest, newest != version, await downloader.governsHosts else { return }
        let hosts = await worker.redis.persist { queue async throws(RedisError) in try await queue.hosts.troubled() }
        guard let hosts else { return }
        version = newest
        await downloader.adoptHosts(hosts.map(\.news))
    }

    /// Each question with its answer; without one where Redis gave none.
    private static func pair<Question, Answer>(
        _ questions: [Question], _ answers: [Answer]?
    ) -> [(Question, Answer?)] {
        questions.enumerated().map { index, question in
            (question, answers.flatMap { index < $0.count ? $0[index] : nil })
        }
    }
}
