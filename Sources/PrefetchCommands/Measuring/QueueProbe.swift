internal import Glibc
internal import Prefetch
internal import Redis

struct QueueProbe: Sendable {
    /// Timeout of Redis in seconds: less than a scraper's.
    private static let waitLimit = 5.0

    private let queue: PrefetchQueue
    private let cache: String?

    /// An unreachable Redis is reported, not waited for.
    init(_ queue: PrefetchQueue, cache: String?) {
        var queue = queue
        queue.redis.waitLimit = .zero
        (self.queue, self.cache) = (queue, cache)
    }

    func answer(_ request: MetricsServer.Request) async -> MetricsServer.Response {
        switch request.path {
        case "/metrics": return await metrics(MetricFormat(accept: request.accept))
        case "/healthz": return MetricsServer.Response(status: 200, body: "ok\n")
        case "/readyz":
            let problems = await problems()
            return problems.isEmpty
                ? MetricsServer.Response(status: 200, body: "ready\n")
                : MetricsServer.Response(status: 503, body: problems.map { $0 + "\n" }.joined())
        default:
            return MetricsServer.Response(status: 404, body: "there are /metrics, /healthz and /readyz\n")
        }
    }

    private func metrics(_ format: MetricFormat) async -> MetricsServer.Response {
        let began = ContinuousClock.now
        let snapshot = await inTime { () async throws(RedisError) in try await queue.views.snapshot() }
        let took = (ContinuousClock.now - began) / .seconds(1)
        let folder = cache.flatMap { QueueMetrics.Cache($0) }
        let families =
            switch snapshot {
            case .success(let snapshot): QueueMetrics.families(snapshot, folder, took: took)
            case .failure: QueueMetrics.away(folder, took: took)
            }
        return MetricsServer.Response(
            status: 200, contentType: format.contentType, body: format.text(families, queue: queue.keys.queue))
    }

    /// Why no work can be done now, a sentence each.
    private func problems() async -> [String] {
        var problems: [String] = []
        let facts = await inTime { () async throws(RedisError) in try await queue.connection.serverFacts().check() }
        if case .failure(let error) = facts { problems.append(error.message) }
        if let cache, access(cache, W_OK | X_OK) != 0 {
            problems.append("the cache \(cache) cannot be written: \(String(cString: strerror(errno)))")
        }
        return problems
    }

    /// Redis' reply, or why there is none in time.
    private func inTime<Success: Sendable>(
        _ body: @escaping @Sendable () async throws(RedisError) -> Success
    ) async -> Result<Success, RedisError> {
        await withTaskGroup(of: Result<Success, RedisError>?.self) { group in
            group.addTask {
                do throws(RedisError) { return .success(try await body()) } catch { return .failure(error) }
            }
            let connection = queue.connection
            group.addTask {
                try? await Task.sleep(for: .seconds(Self.waitLimit))
                // The pending call returns, as interrupted.
                if !Task.isCancelled { connection.interrupt() }
                return nil
            }
            defer { group.cancelAll() }
            while let result = await group.next() {
                if let result { return result }
            }
            return .failure(RedisError(.interrupted, "Redis does not answer"))
        }
    }
}
