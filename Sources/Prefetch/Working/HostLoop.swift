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
            // A worker that may be out of order calls no host silent for the others, which would ask it more rarely.
            let news = isDoubtful ? calls.news.filter { $0.state != .silent } : calls.news
            if !news.isEmpty {
                await redis.persist { queue async throws(RedisError) in try await queue.hosts.note(news) }
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
                await downloader.grantShares(Self.pair(calls.shares, granted).map { ($0, $1 ?? nil) })
            }
            if !calls.hostRequests.isEmpty {
                let granted = await redis.persist { queue async throws(RedisError) in
                    try await queue.hosts.reserve(calls.hostRequests)
                }
                await downloader.grant(Self.pair(calls.hostRequests, granted).map { ($0, $1 ?? nil) })
            }
        }
    }

    /// Whether what fails here may be due to this machine, and others are there.
    private var isDoubtful: Bool {
        let network = worker.network
        guard worker.registration.settings.workers > 1 else { return false }
        return network.fault != nil || !network.isProven && network.failures.areOfManyHosts
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
