internal import Glibc
package import Redis

/// One user's reference to the redis-server of a cache: its data is in the state of the cache's runs (``RunState``), it listens on a Unix
/// socket only, and it lives until the last user leaves.
///
/// The process that gets the lock starts the server, which inherits the lock: it is free again when the server has really ended, whichever
/// process dies. The kernel ends the server with its owner (SIGTERM: the append-only file is complete); within 100 ms another user takes
/// the lock and starts a server on the same data and the same socket, and connections reconnect automatically.
package actor PrivateRedis {
    struct Server {
        let child: Child
        let lock: LockFile
    }

    /// How often a user checks whether the owner has gone.
    private static let pollInterval = Duration.milliseconds(100)
    /// Timeout for a reply of a server whose lock is taken: its owner may be starting it, or leaving.
    package static let waitLimit = Duration.seconds(5)

    /// Bytes, which are loaded within milliseconds.
    private static let smallData = 1 << 20

    package nonisolated let configuration: RedisConfiguration
    nonisolated let folder: PrivateRedisFolder
    nonisolated let socket: String
    nonisolated let searchPath: String
    nonisolated let children = ChildProcesses()
    private let onFailure: @Sendable (PrefetchError) -> Void
    private var server: Server?
    private var crashes = CrashLoop()
    private var failures = 0
    private var watch: Task<Void, Never>?
    private(set) var isLeaving = false

    private init(
        folder: PrivateRedisFolder, socket: String, searchPath: String,
        onFailure: @escaping @Sendable (PrefetchError) -> Void
    ) {
        self.folder = folder
        self.socket = socket
        self.searchPath = searchPath
        self.onFailure = onFailure
        configuration = RedisConfiguration(endpoint: .unix(path: socket))
    }

    deinit { watch?.cancel() }

    /// Finds the server of a cache, or starts it. Returns when it replies and has loaded its data.
    ///
    /// Every success must be followed by ``leave()``; without it the server ends with the process.
    /// - Parameters:
    ///   - state: that of the cache's runs.
    ///   - waitLimit: timeout for a server that is starting or ending; default 5 s.
    ///   - searchPath: where redis-server is searched; default PATH.
    ///   - willStart: called before a server is started that is going to be ready within milliseconds, since it has little to load.
    ///   - onFailure: called once when the server cannot be kept running; every command fails from then on.
    /// - Returns: a user of the server.
    /// - Throws: `redisUnavailable` (no redis-server or too old, or it does not start, or it is another host's),
    ///   `cacheUnavailable` (something in the state is not private to this user), `inputOutput`, and `stopped` when cancelled.
    package static func attach(
        _ state: RunState, waitLimit: Duration = PrivateRedis.waitLimit,
        searchPath: String? = nil, willStart: (RedisConfiguration) async -> Void = { _ in },
        onFailure: @escaping @Sendable (PrefetchError) -> Void = { _ in }
    ) async throws(PrefetchError) -> PrivateRedis {
        let folder = try state.redis()
        let searchPath = searchPath ?? getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
        var probes = [folder.socket: ServerProbe(socket: folder.socket)]
        var deadline = ContinuousClock.now + waitLimit
        while true {
            if let lock = try LockFile.take(PrivateRedisFolder.lockName, in: folder.data) {
                let user = PrivateRedis(
                    folder: folder, socket: folder.socket, searchPath: searchPath, onFailure: onFailure)
                if folder.dataSize < smallData { await willStart(user.configuration) }
                try await user.own(lock)
                return user
            }
            // The state may have another path where the server was started: in another container.
            let record = folder.record
            if let other = record?.socket, probes[other] == nil, folder.isOurs(socket: other) {
                probes[other] = ServerProbe(socket: other)
            }
            for (socket, probe) in probes {
                switch await probe.state() {
                case .ready:
                    let user = PrivateRedis(
                        folder: folder, socket: socket, searchPath: searchPath, onFailure: onFailure)
                    await user.startWatching()
                    return user
                case .loading: deadline = ContinuousClock.now + waitLimit
                case .away: continue
                }
            }
            guard ContinuousClock.now < deadline else { throw unreachable(folder: folder, record: record) }
            do {
                try await Task.sleep(for: .milliseconds(10))
            } catch {
                throw PrefetchError(.stopped, "stopped while the private Redis of \(folder.cache) was starting")
            }
        }
    }

    package var isOwner: Bool { server != nil }

    /// Releases the server. An owner ends it and waits until its data is on disk; another user restarts it. Later calls do nothing.
    package func leave() async {
        isLeaving = true
        watch?.cancel()
        await endServer()
        await watch?.value
        // The watch may have been starting one.
        await endServer()
    }

    private func endServer() async {
        guard let server else { return }
        await askToEnd(server)
        await server.child.stop(waitLimit: .seconds(30))
        server.lock.release()
        self.server = nil
    }

    /// SHUTDOWN writes the same data as SIGTERM, but at once; signals are only checked ten times per second.
    private func askToEnd(_ server: Server) async {
        let connection = RedisConnection(
            RedisConfiguration(
                endpoint: .unix(path: socket), connectTimeout: .seconds(1), commandTimeout: .seconds(30)),
            name: "prefetch-leave")
        do throws(RedisError) {
            try await connection.command(["SHUTDOWN"])
        } catch {
            // The connection ends with the server. A server that does not reply gets the signal.
        }
    }

    private func own(_ lock: LockFile) async throws(PrefetchError) {
        server = try await startServer(lock: lock)
        startWatching()
    }

    private func startWatching() {
        watch = Task { [weak self] in
            while !Task.isCancelled {
                if let child = await self?.server?.child {
                    await child.wait()
                } else {
                    try? await Task.sleep(for: Self.pollInterval)
                }
                guard let self, await keepServerRunning() else { return }
            }
        }
    }

    /// Starts the server if it is gone and no other user does.
    /// - Returns: whether to go on watching.
    private func keepServerRunning() async -> Bool {
        if isLeaving { return false }
        do throws(PrefetchError) {
            if server != nil, crashes.died(at: .now) != nil {
                failures = CrashLoop.limit
                throw failedToStart(
                    "the private Redis of \(folder.cache) ended \(CrashLoop.limit) times in a row", from: 0)
            }
            var free = server?.lock
            if free == nil { free = try LockFile.take(PrivateRedisFolder.lockName, in: folder.data) }
            guard let lock = free else { return true }
            server = nil
            server = try await startServer(lock: lock)
            failures = 0
            return true
        } catch {
            // Another user may succeed meanwhile.
            server?.lock.release()
            server = nil
            failures += 1
            guard !isLeaving else { return false }
            guard failures < CrashLoop.limit else {
                onFailure(error)
                return false
            }
            try? await Task.sleep(for: CrashLoop.pause(beforeRestart: failures))
            return true
        }
    }
}
