import Glibc
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Private Redis", .timeLimit(.minutes(5)))
struct PrivateRedisTests {
    private let directory = TemporaryDirectory()
    private var cache: String { directory.path("cache") }
    private var state: StateFolder { StateFolder(path: directory.path("state")) }
    /// The server's folder, once there is a cache.
    private var data: String { directory.path("state/\(CacheDirectory.existing(cache)?.id ?? "none")/redis") }

    init() { signal(SIGPIPE, SIG_IGN) }

    private func attach(
        cache: String, searchPath: String? = nil,
        onFailure: @escaping @Sendable (PrefetchError) -> Void = { _ in }
    ) async throws(PrefetchError) -> PrivateRedis {
        try await PrivateRedis.attach(
            RunState.open(cache, in: state), searchPath: searchPath, onFailure: onFailure)
    }

    private func folder() throws -> PrivateRedisFolder { try RunState.open(cache, in: state).redis() }

    @Test("The server starts on a private socket, and its data is there the next time")
    func startsAndKeeps() async throws {
        #expect(!RunState.exists(cache, in: state))
        let first = try await attach(cache: cache)
        #expect(first.configuration.endpoint == .unix(path: data + "/redis.sock"))
        #expect(await first.isOwner)
        #expect(RunState.exists(cache, in: state))
        let redis = first.connection
        try await redis.command(["SET", "k", "v"])
        let facts = try await redis.command(["INFO"]).string ?? ""
        for line in ["tcp_port:0", "aof_enabled:1", "maxmemory_policy:noeviction"] {
            #expect(facts.contains("\(line)\r\n"), "\(line)")
        }
        var status = stat()
        stat(data, &status)
        #expect(status.st_mode & 0o777 == 0o700)
        stat(data + "/redis.sock", &status)
        #expect(status.st_mode & 0o777 == 0o600)
        let pid = try #require(await first.serverPID())
        let record = try #require(ServerRecord(json: readFile(data + "/redis.json") ?? []))
        #expect(record.owner == getpid() && record.server == pid)
        await first.leave()
        await first.leave()
        #expect(isGone(pid))

        let second = try await attach(cache: cache)
        #expect(try await second.connection.command(["GET", "k"]).string == "v")
        await second.leave()
    }

    @Test("When the owner leaves, another user takes the server over, and connections find it again")
    func takeover() async throws {
        let owner = try await attach(cache: cache)
        let guest = try await attach(cache: cache + "/../cache")
        let bystander = try await attach(cache: cache)
        #expect(await !guest.isOwner)
        #expect(guest.configuration == owner.configuration)
        let redis = guest.connection
        try await redis.command(["SET", "k", "v"])
        await owner.leave()
        #expect(await becomes { (try? await redis.command(["GET", "k"]).string) == "v" })
        // It answers a moment before the one that started it knows.
        #expect(await becomes { await guest.isOwner != bystander.isOwner })
        await guest.leave()
        #expect(await becomes { (try? await redis.command(["GET", "k"]).string) == "v" })
        #expect(await becomes { await bystander.isOwner })
        let pid = try #require(await bystander.serverPID())
        await bystander.leave()
        #expect(isGone(pid))
    }

    @Test("Users that come at the same time share one server")
    func stampede() async throws {
        let cache = cache
        let users = try await withThrowingTaskGroup(of: PrivateRedis.self) { group in
            for _ in 0..<6 { group.addTask { try await attach(cache: cache) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        var owners = 0
        var pids: Set<Int32?> = []
        for user in users {
            owners += await user.isOwner ? 1 : 0
            pids.insert(await user.serverPID())
        }
        #expect(owners == 1 && pids.count == 1 && !pids.contains(nil))
        // Together, as a terminal's Ctrl-C would: whoever takes over meanwhile still ends what it has started.
        await withTaskGroup(of: Void.self) { group in
            for user in users { group.addTask { await user.leave() } }
        }
        #expect(LockFile.isFree(data + "/server.lock"))
    }

    @Test("A server that is killed comes back with what it had written")
    func killedServer() async throws {
        let owner = try await attach(cache: cache)
        let redis = owner.connection
        try await redis.command(["SET", "k", "v"])
        #expect(await becomes { await owner.hasWrittenAll })
        let pid = try #require(await owner.serverPID())
        kill(pid, SIGKILL)
        #expect(await becomes { (try? await redis.command(["GET", "k"]).string) == "v" })
        #expect(await owner.serverPID() != pid)
        await owner.leave()
    }

    @Test("A server whose owner was another process is taken over when it is killed")
    func killedForeignServer() async throws {
        let maker = try await attach(cache: cache)
        await maker.leave()
        // flock(1) takes the lock and lets redis-server inherit it, as an owner does.
        let settings = "port 0\nunixsocket redis.sock\nappendonly yes\nsave \"\"\n"
        let other = try await ChildProcess(
            "/usr/bin/env",
            ["-C", data, "flock", "--no-fork", "server.lock", "redis-server", "-"],
            input: Array(settings.utf8))
        #expect(await becomes { !LockFile.isFree(data + "/server.lock") })
        let guest = try await attach(cache: cache)
        #expect(await !guest.isOwner)
        #expect(await guest.serverPID() == other.pid)
        try await guest.connection.command(["SET", "k", "v"])
        #expect(await becomes { await guest.hasWrittenAll })
        other.signal(SIGKILL)
        await other.wait()
        #expect(await becomes { (try? await guest.connection.command(["GET", "k"]).string) == "v" })
        #expect(await becomes { await guest.isOwner })
        await guest.leave()
    }

    @Test("A server that cannot be kept running is reported once")
    func hopeless() async throws {
        let reports = Reports()
        let owner = try await attach(cache: cache) { error in Task { await reports.add(error) } }
        let pid = try #require(await owner.serverPID())
        // Its restart fails: the log, which every start opens, is a directory now.
        unlink(data + "/redis.log")
        mkdir(data + "/redis.log", 0o700)
        kill(pid, SIGKILL)
        #expect(await becomes { await !reports.errors.isEmpty })
        #expect(await reports.errors.map(\.kind) == [.cacheUnavailable])
        #expect(await !owner.isOwner)
        await owner.leave()
    }

    @Test("A state with a path too long for a socket has its socket in /tmp, and odd characters are no obstacle")
    func longPath() async throws {
        let path = directory.path("Bilder \"neu\"\nä\\ 'x'/" + String(repeating: "x", count: 120))
        let run = try RunState.open(path + "/cache", in: StateFolder(path: path + "/state"))
        let first = try await PrivateRedis.attach(run)
        guard case .unix(let socket) = first.configuration.endpoint else {
            throw RedisError(.configuration, "no socket")
        }
        #expect(socket.hasPrefix("/tmp/prefetch-\(geteuid())/") && socket.utf8.count < 60)
        try await first.connection.command(["SET", "k", "v"])
        let guest = try await PrivateRedis.attach(run)
        #expect(guest.configuration == first.configuration)
        await guest.leave()
        await first.leave()
        #expect(access(try run.redis().data.path + "/appendonlydir", F_OK) == 0)
        #expect(access(socket, F_OK) != 0)
    }

    @Test("The redis-server of a package that brings one comes before those of PATH")
    func ownProgram() {
        for folder in ["own", "first", "second"] {
            mkdir(directory.path(folder), 0o755)
            directory.write(Array("#!/bin/sh\n".utf8), to: "\(folder)/redis-server")
            chmod(directory.path("\(folder)/redis-server"), 0o755)
        }
        let searchPath = ":relative:\(directory.path("none")):\(directory.path("first")):\(directory.path("second"))"
        func find() -> String? { RedisProgram.path(in: searchPath, ownFolder: directory.path("own")) }
        #expect(find() == directory.path("own/redis-server"))
        unlink(directory.path("own/redis-server"))
        #expect(find() == directory.path("first/redis-server"))
        chmod(directory.path("first/redis-server"), 0o644)
        #expect(find() == directory.path("second/redis-server"))
    }

    @Test("Without redis-server the error names the package, with an old one its version")
    func unusableProgram() async throws {
        let missing = await #expect(throws: PrefetchError.self) {
            try await attach(cache: cache, searchPath: directory.path)
        }
        #expect(missing?.kind == .redisUnavailable)
        #expect(missing?.hint.contains("apt-get install -y redis-server") == true)
        directory.write(
            Array("#!/bin/sh\necho 'Redis server v=6.0.16 sha=00000000:0 bits=64'\n".utf8), to: "redis-server")
        chmod(directory.path("redis-server"), 0o755)
        let old = await #expect(throws: PrefetchError.self) {
            try await attach(cache: cache, searchPath: directory.path)
        }
        #expect(old?.kind == .redisUnavailable)
        #expect(old?.message.contains("6.0.16") == true)
        // Neither has kept the lock.
        #expect(LockFile.isFree(data + "/server.lock"))
    }

    @Test("A cache that cannot be made is named")
    func unusableCache() async {
        directory.write([], to: "file")
        let error = await #expect(throws: PrefetchError.self) {
            try await attach(cache: directory.path("file"))
        }
        #expect(error?.kind == .cacheUnavailable)
        #expect(error?.message.contains(directory.path("file")) == true)
    }

    @Test("Damaged data is reported in the server's words, with the command that repairs it")
    func damagedData() async throws {
        let first = try await attach(cache: cache)
        try await first.connection.command(["SET", "k", "v"])
        await first.leave()
        let folder = data + "/appendonlydir/"
        let file = try #require(fopen(folder + "appendonly.aof.1.incr.aof", "a"))
        fputs("nonsense\r\nmore\r\n", file)
        fclose(file)
        let error = await #expect(throws: PrefetchError.self) { try await attach(cache: cache) }
        #expect(error?.kind == .redisUnavailable)
        #expect(error?.message.contains("Bad file format") == true)
        #expect(error?.hint.contains("redis-check-aof --fix '\(folder)appendonly.aof.manifest'") == true)
    }

    @Test("A lock held on another machine is refused with host and process")
    func otherHost() async throws {
        let folder = try folder()
        let lock = try #require(try LockFile.take(PrivateRedisFolder.lockName, in: folder.data))
        let record = ServerRecord(socket: "/nowhere/redis.sock", host: "elsewhere", owner: 4711, server: 4712)
        try folder.data.write(record.json, to: PrivateRedisFolder.recordName)
        let error = await #expect(throws: PrefetchError.self) { try await attach(cache: cache) }
        #expect(error?.kind == .redisUnavailable)
        #expect(error?.message.contains("elsewhere") == true && error?.message.contains("4711") == true)
        withExtendedLifetime(lock) {}
    }

    @Test("A cancelled attach ends and keeps nothing")
    func cancelled() async throws {
        let cache = cache
        let folder = try folder()
        let lock = try #require(try LockFile.take(PrivateRedisFolder.lockName, in: folder.data))
        let task = Task { try await attach(cache: cache) }
        task.cancel()
        await #expect(throws: PrefetchError.self) { try await task.value }
        withExtendedLifetime(lock) {}
    }

    @Test(
        "A record survives its way through JSON",
        arguments: ["/a/b.sock", "/a \"quoted\"\\\n\t\u{1}ä/x", ""])
    func record(socket: String) {
        let record = ServerRecord(socket: socket, host: "höst", owner: 1, server: 2_000_000)
        #expect(ServerRecord(json: Array(record.json.utf8)) == record)
    }

    @Test(
        "What is no record is none",
        arguments: [
            "", "{}", "[]", "{\"socket\":\"/a\"", "{\"socket\":1,\"host\":2,\"owner\":3,\"server\":4}", "{\"a\":\"\\",
            "{\"a\":\"\\u00", "{\"owner\":99999999999}",
        ])
    func noRecord(text: String) {
        #expect(ServerRecord(json: Array(text.utf8)) == nil)
    }
}

private actor Reports {
    var errors: [PrefetchError] = []

    func add(_ error: PrefetchError) { errors.append(error) }
}

extension LockFile {
    static func isFree(_ path: String) -> Bool {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        guard let folder = try? PinnedFolder(path: String(path[..<slash])) else { return true }
        return (try? take(String(path[slash...].dropFirst()), in: folder)) != nil
    }
}
