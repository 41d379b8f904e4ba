internal import Redis

/// The URLs of a batch that are in a job, on its list or with a worker. Read while the batch is held, so that jobs only go from workers to
/// the list or end: workers first, then the list from its left end, where the coordinator pushes; so none is missed.
struct JobCoverage {
    /// One element per URL index: whether it is in a job.
    private(set) var isCovered: [Bool]
    /// Index after the last URL of any job.
    private(set) var end = 0
    private(set) var names: Set<String> = []
    /// Elements removed from the list, invalid and duplicate ones; data read before that may be outdated.
    private(set) var buried = 0, doubled = 0

    private static let slice = 64

    /// Reads all jobs of a batch, and removes invalid and duplicate ones from its list.
    /// * `limit`: URLs of the list.
    /// * `settled`: whether a URL has an outcome; such a URL may be in two jobs.
    /// * `sweeps`: false: removes nothing.
    /// Returns nil if the hold was interrupted.
    static func read(
        _ identity: BatchIdentity, queue: PrefetchQueue, token: String, limit: Int, sweeps: Bool, settled: (Int) -> Bool
    ) async throws(RedisError) -> JobCoverage? {
        let batch = identity.id
        var coverage = JobCoverage(isCovered: Array(repeating: false, count: limit))
        let owners = Set(try await queue.workers.names()).union(try await queue.keySpace.owners()).sorted()
        if !owners.isEmpty {
            for reply in try await queue.redis.read(owners.map { ["HKEYS", RedisArgument(queue.keys.owned(by: $0))] }) {
                for claim in (try reply.get().array ?? []).compactMap(\.string) {
                    guard let (base, count) = identity.range(ofClaim: claim), base <= limit - count else { continue }
                    coverage.add("\(batch):\(base):\(count)", base..<(base + count))
                }
            }
        }
        var at = 0
        while true {
            guard try await queue.repairSteps.hold(batch, token: token, begins: false) != nil else { return nil }
            let elements =
                try await queue.redis.read([
                    [
                        "LRANGE", RedisArgument(queue.keys.jobs(batch)), RedisArgument(at),
                        RedisArgument(at + slice - 1),
                    ]
                ])[0].get().array ?? []
            guard !elements.isEmpty else { return coverage }
            at += elements.count
            for element in elements.compactMap(\.bytes) {
                if let job = PrefetchJob(element), job.batch == batch, job.base + job.entries.count <= limit {
                    let range = job.base..<(job.base + job.entries.count)
                    if sweeps, range.contains(where: { coverage.isCovered[$0] && !settled($0) }) {
                        if try await queue.repairSteps.sweep(batch, token: token, element: element, isDead: false) {
                            coverage.doubled += 1
                            at -= 1
                        }
                    } else {
                        coverage.add(job.name, range)
                    }
                } else if sweeps, try await queue.repairSteps.sweep(batch, token: token, element: element, isDead: true)
                {
                    coverage.buried += 1
                    at -= 1
                }
            }
        }
    }

    private mutating func add(_ name: String, _ range: Range<Int>) {
        names.insert(name)
        for index in range { isCovered[index] = true }
        end = max(end, range.upperBound)
    }
}
