internal import CLinux
internal import Glibc
internal import Redis

extension PrivateRedis {
    /// A server is normally ready after 10 ms; this allows for a busy machine.
    private static let startLimit = Duration.seconds(10)
    private static let maxLog = 1 << 20

    /// Starts redis-server and waits until it has loaded its data. A failure releases the lock.
    func startServer(lock: LockFile) async throws(PrefetchError) -> Server {
        do throws(PrefetchError) {
            return Server(child: try await startChild(lock: lock), lock: lock)
        } catch {
            lock.release()
            throw error
        }
    }

    private func startChild(lock: LockFile) async throws(PrefetchError) -> Child {
        let program = try RedisProgram.find(in: searchPath)
        // Redis executes its append-only file, and follows links.
        try folder.data.inspect(folders: ["appendonlydir"])
        let log = try folder.data.open(PrivateRedisFolder.logName, O_WRONLY | O_CREAT | O_APPEND)
        defer { close(log) }
        var status = stat()
        fstat(log, &status)
        if status.st_size > Self.maxLog && ftruncate(log, 0) == 0 { status.st_size = 0 }
        let input = try configurationPipe()
        defer { close(input) }
        let child: Child
        do throws(ChildProcesses.StartError) {
            child = try await children.start(
                // It reads its settings from standard input, and works in its folder, so that no path leads it to anything but its data.
                ChildProgram(
                    path: program.path, arguments: ["-"], input: input, output: log, errors: log,
                    keeping: lock.descriptor, folder: folder.data.descriptor, deathSignal: SIGTERM))
        } catch {
            throw PrefetchError(
                .redisUnavailable, "cannot run \(program.path): \(error.reason)",
                hint: "apt-get install -y --reinstall redis-server")
        }
        do throws(PrefetchError) {
            let record = ServerRecord(socket: socket, host: ThisHost.name, owner: getpid(), server: child.pid)
            try folder.data.write(record.json, to: PrivateRedisFolder.recordName)
            try await waitUntilReady(child, of: program, logStart: Int(status.st_size))
        } catch {
            await child.stop(waitLimit: .seconds(30))
            throw error
        }
        return child
    }

    /// The read end of a pipe with ``configurationText``, which fits into any pipe.
    private func configurationPipe() throws(PrefetchError) -> Int32 {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .file("make a pipe for", folder.cache) }
        for end in ends { clinux_set_cloexec(end, 1) }
        clinux_set_nonblock(ends[1], 1)
        let bytes = Array(configurationText.utf8)
        let count = write(ends[1], bytes, bytes.count)
        close(ends[1])
        guard count == bytes.count else {
            close(ends[0])
            throw .file("write the settings of Redis for", folder.cache)
        }
        return ends[0]
    }

    private func waitUntilReady(
        _ child: Child, of program: RedisProgram, logStart: Int
    ) async throws(PrefetchError) {
        let probe = ServerProbe(socket: socket)
        var deadline = ContinuousClock.now + Self.startLimit
        while true {
            switch await probe.state() {
            case .ready: return
            case .loading: deadline = ContinuousClock.now + Self.startLimit
            case .away: break
            }
            guard child.isRunning else {
                try await program.checkVersion(using: children)
                throw failedToStart("the private Redis of \(folder.cache) does not start", from: logStart)
            }
            guard ContinuousClock.now < deadline else {
                throw failedToStart("the private Redis of \(folder.cache) does not answer on \(socket)", from: logStart)
            }
            try? await Task.sleep(for: .milliseconds(3))
            guard !Task.isCancelled, !isLeaving else {
                throw PrefetchError(.stopped, "stopped while the private Redis of \(folder.cache) was starting")
            }
        }
    }

    /// An error with the last log lines of the server; `from` is the size of the log before the start.
    func failedToStart(_ message: String, from logStart: Int) -> PrefetchError {
        let log = String(decoding: folder.data.read(PrivateRedisFolder.logName, from: logStart), as: UTF8.self)
        let lines = log.split(whereSeparator: \.isNewline).suffix(3).joined(separator: " | ")
        let hint =
            log.contains("redis-check-aof")
            ? "its data is damaged; repair it with: redis-check-aof --fix '\(folder.manifest)'"
            : "its log is \(folder.log)"
        return PrefetchError(.redisUnavailable, lines.isEmpty ? message : "\(message): \(lines)", hint: hint)
    }

    /// The lock is taken, but there is no reply.
    static func unreachable(folder: PrivateRedisFolder, record: ServerRecord?) -> PrefetchError {
        guard let record else {
            return PrefetchError(
                .redisUnavailable, "another process holds \(folder.lock), but no Redis answers on \(folder.socket)",
                hint: "find it with: fuser '\(folder.lock)'")
        }
        guard record.host == ThisHost.name else {
            return PrefetchError(
                .redisUnavailable,
                "the cache \(folder.cache) is in use on host \(record.host), by process \(record.owner)",
                hint: "wait for it, or use a Redis of your own for several machines: --redis URL")
        }
        return PrefetchError(
            .redisUnavailable,
            "the private Redis of \(folder.cache) does not answer; process \(record.owner) has started it as \(record.server)",
            hint: "its log is \(folder.log)")
    }

    /// Commands that the queue does not need and that reach beyond it: other files, other machines, code. Forbidding calls is not enough,
    /// since Redis executes whatever its append-only file contains; without a name they cannot be in there either.
    static let removedCommands = [
        "ACL", "CLUSTER", "CONFIG", "DEBUG", "FAILOVER", "FCALL", "FCALL_RO", "FUNCTION", "MIGRATE", "MODULE", "PSYNC",
        "REPLCONF", "REPLICAOF", "RESTORE", "RESTORE-ASKING", "SLAVEOF", "SYNC",
    ]

    /// `appenddirname` is there since 7.0, and the default.
    private var configurationText: String {
        """
        port 0
        unixsocket \(Self.quoted(folder.boundSocket))
        unixsocketperm 600
        daemonize no
        supervised no
        logfile ""
        appendonly yes
        appenddirname appendonlydir
        appendfsync everysec
        save ""
        maxmemory-policy noeviction

        """ + Self.removedCommands.map { "rename-command \($0) \"\"\n" }.joined()
    }

    /// A quoted word of redis.conf: bytes other than printable ASCII as \xHH, so no path can end its line.
    private static func quoted(_ text: String) -> String {
        var out = "\""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += "\\" + String(UnicodeScalar(byte))
            case 32...126: out.unicodeScalars.append(UnicodeScalar(byte))
            default: out += (byte < 16 ? "\\x0" : "\\x") + String(byte, radix: 16)
            }
        }
        return out + "\""
    }
}
