/// State shared by the loop and the callers of its server: routes and statistics.
struct OriginState: Sendable {
    typealias Handler = @Sendable (OriginRequest) -> OriginResponse

    struct Waiter: Sendable {
        var path: String?
        var count: Int
        var resume: @Sendable () -> Void
    }

    var routes: [String: Handler] = [:]
    var fallback: Handler?
    var keepsLog = true
    var log: [OriginRequest] = []
    var counts: [String: Int] = [:]
    var total = 0
    var active = 0
    var maxActive = 0
    var connections = 0
    var openConnections = 0
    var released: Set<String> = []
    /// Incremented by every release, so that the loop checks held connections only then.
    var releases = 0
    var waiters: [Waiter] = []

    func count(of path: String?) -> Int {
        path.map { counts[$0, default: 0] } ?? total
    }

    /// Counts a request; returns its handler and the waiters that are now satisfied.
    mutating func begin(_ request: inout OriginRequest) -> (Handler?, [@Sendable () -> Void]) {
        total += 1
        request.number = counts[request.path, default: 0] + 1
        counts[request.path] = request.number
        active += 1
        maxActive = max(maxActive, active)
        if keepsLog { log.append(request) }
        guard !waiters.isEmpty else { return (routes[request.path] ?? fallback, []) }
        var ready: [@Sendable () -> Void] = []
        var rest: [Waiter] = []
        for waiter in waiters {
            if count(of: waiter.path) >= waiter.count { ready.append(waiter.resume) } else { rest.append(waiter) }
        }
        waiters = rest
        return (routes[request.path] ?? fallback, ready)
    }
}
