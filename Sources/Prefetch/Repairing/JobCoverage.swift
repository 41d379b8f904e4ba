internal import Redis

/// Which URLs of a batch are in a job, on its list or with a worker. Read while the batch is held, so that jobs only go from workers to
/// the list or end: workers first, then the list from its left end, where the coordinator pushes; so none is missed.
struct JobCoverage {
    /// One byte per URL index: whether it is in a job.
    private(set) var isCovered: [Bool]
    /// Index behind the last URL of any job.
    private(set) var end = 0
    /// The jobs there are.
    private(set) var names: Set<String> = []
    /// How many elements were taken off the list: what was seen before that may be wrong then.
    private(set) var buried = 0, doubled = 0

    private static let slice = 64

    /// Reads all jobs of a batch, and takes off its list what is no job and what has URLs that are in another one.
    ///
    /// * `limit`: URLs of the list.
    /// * `settled`: whether a URL has an outcome; such a one may be in two jobs.
    /// * `sweeps`: false: nothing is taken off.
    /// Returns nil where the batch was not held all the time.
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
            guard try await queue.mending.hold(batch, token: token, begins: false) != nil else { return nil }
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
                        if try await queue.mending.sweep(batch, token: token, element: element, isDead: false) {
                            coverage.doubled += 1
                            at -= 1
                        }
                    } else {
                        coverage.add(job.name, range)
                    }
                } else if sweeps, try await queue.mending.sweep(batch, token: token, element: element, isDead: true) {
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
