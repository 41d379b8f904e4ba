internal import Redis
internal import WebImage

/// Tells the other workers of the machine through the queue how downloads ended that they waited for.
struct FleetFailures: FailureSharing {
    let worker: WorkerContext

    func tell(_ error: WebImageError, question: String) async {
        guard let name = worker.registration.rules.name(of: question) else { return }
        // Not waited for: who is not told makes a request.
        _ = try? await worker.redis.queue.hosts.failure(of: name, telling: error)
    }

    func error(question: String) async -> WebImageError? {
        guard let name = worker.registration.rules.name(of: question) else { return nil }
        return (try? await worker.redis.queue.hosts.failure(of: name)) ?? nil
    }
}
