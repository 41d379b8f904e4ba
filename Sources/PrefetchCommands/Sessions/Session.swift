internal import Prefetch
internal import Redis
internal import Threading

/// A command's access to its queue: a connection to the given Redis, or to the private one of a cache, which is started from its data for
/// the time of the command if it is not running.
struct Session: Sendable {
    let queue: PrefetchQueue
    /// The configuration for other users of the same Redis.
    let redis: RedisConfiguration
    private let attachment: PrivateRedis?
    /// Whether Redis has answered; a worker also begins without.
    let hasConnected: Bool

    /// Timeout of read-only commands for Redis: a command that displays something responds within 2 s.
    static let soon = Duration.milliseconds(1500)

    /// Connects, and checks that this Redis can keep a queue.
    /// * `place`: overrides the location's.
    /// * `waits`: the caller itself waits for an unreachable Redis.
    /// * `makes`: creates the private Redis of a cache if there is none.
    /// * `readsOnly`: for read-only, interactive commands: a short timeout.
    /// - Throws: the problem, with the exit code.
    static func open(
        _ location: RedisLocation, at place: RedisLocation.Place? = nil, waits: Bool = false, makes: Bool = false,
        readsOnly: Bool = false
    ) async throws(PrefetchError) -> Session {
        // Not by `??`, whose closure would lose the type of the error.
        let place = if let place { place } else { try location.place() }
        switch place {
        case .server(let configuration):
            return try await Session(
                configuration, attachment: nil, queue: location.queue, waits: waits, readsOnly: readsOnly)
        case .cache(let folder):
            let state = if makes { try location.runState(of: folder) } else { try Self.requireRun(folder, location) }
            let attachment = try await PrivateRedis.attach(state, waitLimit: readsOnly ? soon : PrivateRedis.waitLimit)
            return try await Session(
                attachment.configuration, attachment: attachment, queue: location.queue, readsOnly: readsOnly)
        }
    }

    /// The state of a cache's runs.
    /// - Throws: `notFound` if no run of this user has used it; what is wrong with the state.
    @discardableResult
    static func requireRun(_ cache: String, _ location: RedisLocation) throws(PrefetchError) -> RunState {
        if let state = try RunState.existing(cache, in: location.stateFolder), state.isUsed { return state }
        let cache = Shell.path(cache)
        throw PrefetchError(
            .notFound, "\(cache) has no batches: no run of this user has used it",
            hint:
                "make one: prefetch-coord run urls.txt --cache \(Shell.quoted(cache)); the state of runs may be elsewhere "
                + "(--state), or the queue in another Redis (--redis)"
        )
    }

    /// Connects to a server.
    static func open(
        _ configuration: RedisConfiguration, queue: String, waits: Bool
    ) async throws(PrefetchError) -> Session {
        try await Session(configuration, attachment: nil, queue: queue, waits: waits)
    }

    /// A session over an attached private Redis.
    init(attachment: PrivateRedis, queue: String) async throws(PrefetchError) {
        try await self.init(attachment.configuration, attachment: attachment, queue: queue)
    }

    private init(
        _ configuration: RedisConfiguration, attachment: PrivateRedis?, queue name: String, waits: Bool = false,
        readsOnly: Bool = false
    ) async throws(PrefetchError) {
        var configuration = configuration
        if readsOnly { (configuration.connectTimeout, configuration.commandTimeout) = (Self.soon, Self.soon) }
        redis = configuration
        self.attachment = attachment
        let waitLimit = readsOnly ? Self.soon : .seconds(10)
        queue = PrefetchQueue(configuration, client: "prefetch-coord", name: name, waitLimit: waitLimit)
        let connection = queue.connection
        do throws(RedisError) {
            // A private server may just be restarting, because its owner was killed: that is waited for. Another one is reachable or not;
            // but if it replies that it is not ready (LOADING, CLUSTERDOWN), it soon will be.
            // A connection that was cut is made again, once; one that cannot be made soon is not tried again.
            let began = ContinuousClock.now
            var wasCut = false
            let warnings = try await withRetry(
                until: .now + (waits ? .zero : waitLimit),
                isRetryable: {
                    guard attachment == nil, $0.code != .transient else { return $0.isTransient }
                    defer { wasCut = true }
                    return $0.code == .unavailable && !wasCut && ContinuousClock.now - began < .seconds(1)
                }
            ) { () async throws(RedisError) in
                try await connection.serverFacts().check()
            }
            // A command that only reads is not about what Redis keeps.
            if attachment == nil, waits { for warning in warnings { Console.note("warning: \(warning)") } }
            hasConnected = true
        } catch {
            hasConnected = false
            if waits && error.isTransient { return }
            await attachment?.leave()
            throw PrefetchError(error)
        }
    }

    func close() async {
        await queue.connection.close()
        await attachment?.leave()
    }

    /// Runs `body` with a session and closes it, however `body` ends.
    static func with<Result>(
        _ location: RedisLocation, at place: RedisLocation.Place? = nil, waits: Bool = false, makes: Bool = false,
        readsOnly: Bool = false, _ body: (Session) async throws -> Result
    ) async throws -> Result {
        try await with(
            { () async throws(PrefetchError) in
                try await open(location, at: place, waits: waits, makes: makes, readsOnly: readsOnly)
            }, body)
    }

    static func with<Result>(
        _ open: () async throws(PrefetchError) -> Session, _ body: (Session) async throws -> Result
    ) async throws -> Result {
        let session = try await open()
        do {
            let result = try await body(session)
            await session.close()
            return result
        } catch {
            await session.close()
            throw error
        }
    }

    /// Runs `body` with a session as soon as Redis is ready, waiting as workers do, until a signal.
    /// * `hint`: the command to show after a signal that came before.
    /// - Throws: `stopped` after a signal; problems of Redis that waiting cannot heal.
    static func whenReady<Result>(
        _ location: RedisLocation, at place: RedisLocation.Place? = nil, makes: Bool = false, until stop: StopRequest,
        hint: String, _ body: (Session) async throws -> Result
    ) async throws -> Result {
        try await with(location, at: place, waits: true, makes: makes) { session in
            try await session.meet(until: stop, hint: hint)
            return try await body(session)
        }
    }

    private func meet(until stop: StopRequest, hint: String) async throws {
        guard !hasConnected else { return }
        let waiting = queue.waiting { notice in
            switch notice {
            case .away(let reason): Console.note("waiting for Redis: \(TerminalText.escaped(reason))")
            case .back(let time): Console.note("connected after \(Wording.seconds(time / .seconds(1)))")
            }
        }
        let warnings = try await untilStopped(stop) {
            do throws(RedisError) { return try await waiting.checkServer() } catch { throw PrefetchError(error) }
        }
        guard let warnings else {
            throw PrefetchError(.stopped, "stopped before Redis was there; nothing is queued", hint: hint)
        }
        for warning in warnings { Console.note("warning: \(warning)") }
    }

    /// The queue for feeders: waits while Redis is unreachable or takes no writes, and reports that.
    var waitingQueue: PrefetchQueue {
        queue.waiting { notice in
            switch notice {
            case .away(let reason): Console.note("waiting for Redis: \(TerminalText.escaped(reason))")
            case .back(let time): Console.note("Redis is back after \(Wording.seconds(time / .seconds(1)))")
            }
        }
    }

    /// Nil if it is gone.
    func status(of id: String) async throws(PrefetchError) -> BatchStatus? {
        do throws(RedisError) { return try await queue.batches.status(of: id) } catch {
            throw PrefetchError(error)
        }
    }

    /// Runs calls to this Redis until they end or a signal comes; nil for the latter.
    func untilStopped<Result: Sendable>(
        _ stop: StopRequest, _ body: @escaping @Sendable () async throws -> Result?
    ) async throws -> Result? {
        try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                await stop.first.wait()
                // A Redis that does not reply must not delay the end.
                if stop.first.isOpen { queue.connection.interrupt() }
                return nil
            }
            defer { group.cancelAll() }
            do { return try await group.next() ?? nil } catch {
                // The call that was interrupted may fail first.
                if stop.first.isOpen { return nil }
                throw error
            }
        }
    }
}
