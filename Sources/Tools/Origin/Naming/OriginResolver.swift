internal import Threading

/// A DNS server on loopback, over UDP and TCP, that can fail and lie, for tests and the benchmark. It ends when it is released or stopped
/// with ``stop()``.
package final class OriginResolver: Sendable {
    /// Queries so far.
    package struct Counts: Sendable, Equatable {
        package var queries = 0
        /// Of the queries: never answered, because of the load.
        package var dropped = 0
        /// Of the queries: answered with SERVFAIL because of the load.
        package var failed = 0
        /// Different pairs of name and type.
        package var questions = 0
    }

    package typealias Zone = @Sendable (NameQuestion) -> NameAnswer

    package let address: String
    package let port: Int
    private let state: Locked<OriginResolverState>
    private let loop: OriginResolverLoop

    /// Starts listening, and the thread.
    /// - Parameters:
    ///   - address: an IPv4 or IPv6 address of this machine.
    ///   - port: 0 for any free one.
    ///   - seed: of the load's random numbers.
    ///   - zone: answers each question; called on the server's thread, so it must not block.
    /// - Throws: ``OriginError`` if the address is not available.
    package init(
        address: String = "127.0.0.1", port: Int = 0, seed: UInt64 = 1, zone: @escaping Zone
    ) throws(OriginError) {
        let (listener, datagrams, bound) = try listenForQueries(address: address, port: port)
        self.address = address
        self.port = bound
        state = Locked(OriginResolverState(zone: zone, seed: seed))
        loop = try OriginResolverLoop(listener: listener, datagrams: datagrams, state: state)
    }

    /// Closes every socket; the thread ends when the server is released.
    package func stop() async { await loop.shutDown() }

    /// As `--dns-servers` takes it.
    package var place: String { address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)" }

    package var load: NameLoad {
        get { state.withLock { $0.load.load } }
        set { state.withLock { $0.load.load = newValue } }
    }

    package func setZone(_ zone: @escaping Zone) { state.withLock { $0.zone = zone } }

    package var counts: Counts { state.withLock { $0.counts } }

    /// Queries for a name, of one type or of all.
    package func queryCount(_ name: String, type: UInt16? = nil) -> Int {
        state.withLock { state in
            state.asked.reduce(0) { sum, entry in
                entry.key.name == name && (type ?? entry.key.type) == entry.key.type ? sum + entry.value : sum
            }
        }
    }

    /// Returns after that many queries in all. Not cancellable.
    package func waitForQueries(_ count: Int) async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            let isThere = state.withLock { state in
                if state.counts.queries >= count { return true }
                state.waiters.append((count, { continuation.resume() }))
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}

/// State shared by the loop and the callers of its server.
struct OriginResolverState: Sendable {
    struct Key: Hashable {
        var name: String
        var type: UInt16
    }

    var zone: OriginResolver.Zone
    var load: NameLoadState
    var counts = OriginResolver.Counts()
    var asked: [Key: Int] = [:]
    var waiters: [(count: Int, resume: @Sendable () -> Void)] = []

    init(zone: @escaping OriginResolver.Zone, seed: UInt64) {
        self.zone = zone
        load = NameLoadState(seed: seed)
    }

    /// Counts a query; returns what becomes of it, the zone, and the waiters that are satisfied.
    mutating func begin(
        _ question: inout NameQuestion, now: Double
    ) -> (NameLoadState.Verdict, OriginResolver.Zone, [@Sendable () -> Void]) {
        counts.queries += 1
        func increment(_ count: inout Int) -> Int {
            count += 1
            return count
        }
        question.number = increment(&asked[Key(name: question.name, type: question.type), default: 0])
        if question.number == 1 { counts.questions += 1 }
        let verdict = load.verdict(now: now)
        switch verdict {
        case .drop: counts.dropped += 1
        case .fail: counts.failed += 1
        case .answer: break
        }
        guard !waiters.isEmpty else { return (verdict, zone, []) }
        let ready = waiters.filter { $0.count <= counts.queries }.map(\.resume)
        waiters.removeAll { $0.count <= counts.queries }
        return (verdict, zone, ready)
    }
}
