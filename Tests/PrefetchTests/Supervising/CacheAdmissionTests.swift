import Glibc
import Redis
import TestSupport
import Testing
import Threading

@testable import Prefetch

@Suite("Whose data a private Redis uses", .timeLimit(.minutes(5)))
struct CacheAdmissionTests {
    private let directory = TemporaryDirectory()
    private let notices = Notices()
    private var cache: String { directory.path("cache") }
    private var data: String { cache + "/.prefetch/redis" }

    init() { signal(SIGPIPE, SIG_IGN) }

    /// The terms of a user with this state folder.
    private func terms(_ state: String = "state", trust: CacheAdmission.Trust = .none) -> CacheAdmission {
        let notices = notices
        return CacheAdmission(trust: trust, state: StateFolder(path: directory.path(state))) { notices.add($0) }
    }

    private func attach(
        _ cache: String? = nil, _ terms: CacheAdmission? = nil
    ) async throws(PrefetchError) -> PrivateRedis {
        try await PrivateRedis.attach(cache: cache ?? self.cache, admission: terms ?? self.terms())
    }

    /// The value under `k`, with the server that has it started and ended.
    private func value(_ cache: String? = nil, _ terms: CacheAdmission? = nil) async throws -> String? {
        let user = try await attach(cache, terms)
        let value = try await user.connection.command(["GET", "k"]).string
        await user.leave()
        return value
    }

    /// Makes the cache, with `v` under `k`.
    private func make() async throws {
        let user = try await attach()
        try await user.connection.command(["SET", "k", "v"])
        await user.leave()
    }

    private func shell(_ command: String) async throws {
        let child = try await ChildProcess("/bin/sh", ["-c", "cd '\(directory.path)' && \(command)"])
        try #require(await child.wait() == .exited(0), "\(command): \(child.stderr)")
    }

    private func aside() -> [String] {
        directory.contents().filter { $0.hasPrefix("cache/.prefetch/redis.aside-") && $0.hasSuffix("/appendonlydir/") }
    }

    @Test("A cache is made here where it was made, whatever it is called, and as a copy")
    func madeHere() async throws {
        try await make()
        #expect(try await value() == "v")
        try await shell("mv cache other && cp -a other copy")
        #expect(try await value(directory.path("other")) == "v")
        #expect(try await value(directory.path("copy")) == "v")
        #expect(notices.all == [])
        let list = String(decoding: directory.read("state/caches") ?? [], as: UTF8.self)
        let origin = String(decoding: directory.read("other/.prefetch/redis/origin") ?? [], as: UTF8.self)
        #expect(list.hasSuffix(" \(cache)\n") && list.utf8.count == 66 + cache.utf8.count)
        #expect(origin.utf8.count == 65 && !list.contains(origin.dropLast()))
        for (path, mode) in [
            ("state", 0o700), ("state/caches", 0o600), ("copy/.prefetch/redis", 0o700),
            ("copy/.prefetch/redis/origin", 0o600), ("copy/.prefetch/redis/redis.log", 0o600),
            ("copy/.prefetch/redis/appendonlydir/appendonly.aof.manifest", 0o600),
        ] {
            var status = stat()
            #expect(lstat(directory.path(path), &status) == 0 && Int(status.st_mode & 0o777) == mode, "\(path)")
        }
    }

    @Test("What was not made here is set aside once, with its data, unless somebody vouches for it")
    func setAside() async throws {
        try await make()
        #expect(try await value(nil, terms("b", trust: .standing)) == "v")
        #expect(directory.read("b/caches") == nil)
        #expect(try await value(nil, terms("b")) == nil)
        #expect(aside().count == 1 && notices.all.count == 1)
        let notice = notices.all.first ?? ""
        #expect(notice.contains("\(cache)/.prefetch/redis.aside-") && notice.contains("--trust-cache"), "\(notice)")
        // What took its place was made here, by b alone.
        #expect(try await value(nil, terms("b")) == nil)
        #expect(notices.all.count == 1)
        try await shell("rm -r cache/.prefetch/redis && mv cache/.prefetch/redis.aside-* cache/.prefetch/redis")
        #expect(try await value(nil, terms("b", trust: .given)) == "v")
        // Which is remembered, under a secret that nobody else knows.
        #expect(try await value(nil, terms("b")) == "v")
        #expect(notices.all.count == 1)
        #expect(try await value() == nil)
        #expect(notices.all.count == 2)
    }

    @Test("Users that come at the same time to what was not made here set it aside once, and share one server")
    func stampede() async throws {
        try await make()
        let (cache, terms) = (cache, terms("b"))
        let users = try await withThrowingTaskGroup(of: PrivateRedis.self) { group in
            for _ in 0..<6 { group.addTask { try await PrivateRedis.attach(cache: cache, admission: terms) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        var pids: Set<Int32?> = []
        for user in users { pids.insert(await user.serverPID()) }
        for user in users { await user.leave() }
        #expect(pids.count == 1 && notices.all.count == 1 && aside().count == 1)
    }

    @Test("A server that somebody with another list runs is not taken from it")
    func inUse() async throws {
        let owner = try await attach()
        try await owner.connection.command(["SET", "k", "v"])
        let error = await #expect(throws: PrefetchError.self) { try await attach(nil, terms("b")) }
        #expect(error?.kind == .cacheUnavailable && error?.hint.contains("--trust-cache") == true)
        let guest = try await attach(nil, terms("b", trust: .standing))
        #expect(try await guest.connection.command(["GET", "k"]).string == "v")
        await guest.leave()
        await owner.leave()
        #expect(aside() == [])
    }

    @Test("A command that was killed while it made the folder leaves nothing that is set aside")
    func killedMaking() async throws {
        try await shell(
            "mkdir -p cache/.prefetch && mkdir -m 700 cache/.prefetch/redis && : >cache/.prefetch/redis/origin.1")
        #expect(try await value() == nil)
        #expect(notices.all == [])
    }

    @Test("For a folder that nobody has named nothing is started, and what runs is used while it does")
    func notNamed() async throws {
        var terms = terms()
        terms.startsServer = false
        try await make()
        let away = await #expect(throws: PrefetchError.self) { try await attach(nil, terms) }
        #expect(away?.kind == .notFound && away?.hint.contains("--cache") == true)
        #expect(LockFile.isFree(data + "/server.lock"))
        let owner = try await attach()
        let guest = try await attach(nil, terms)
        #expect(try await guest.connection.command(["GET", "k"]).string == "v")
        await owner.leave()
        #expect(LockFile.isFree(data + "/server.lock"))
        #expect(await !guest.isOwner)
        await guest.leave()
        terms.state = StateFolder(path: directory.path("b"))
        let foreign = try await attach()
        await #expect(throws: PrefetchError.self) { try await attach(nil, terms) }
        await foreign.leave()
        #expect(notices.all == [])
    }

    @Test("Commands that reach beyond the queue are not there")
    func removedCommands() async throws {
        let user = try await attach()
        for command in PrivateRedis.removedCommands {
            let error = await #expect(throws: RedisError.self) {
                try await user.connection.command([RedisArgument(command), "x", "y"])
            }
            #expect(error?.message.contains("unknown command") == true, "\(command): \(error?.message ?? "")")
        }
        await user.leave()
    }

    @Test(
        "An append-only file that has one of them is refused, also where somebody vouches for it",
        arguments: [
            ["MODULE", "LOAD", "./evil.so"], ["REPLICAOF", "127.0.0.1", "1"], ["CONFIG", "SET", "dir", "/tmp"],
            ["SLAVEOF", "127.0.0.1", "1"], ["DEBUG", "SEGFAULT"], ["FUNCTION", "FLUSH"], ["ACL", "SETUSER", "x"],
        ])
    func commandInLog(words: [String]) async throws {
        try await make()
        let file = try #require(fopen(data + "/appendonlydir/appendonly.aof.1.incr.aof", "a"))
        fputs("*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined(), file)
        fclose(file)
        for trust in [CacheAdmission.Trust.none, .standing] {
            let error = await #expect(throws: PrefetchError.self) { try await attach(nil, terms(trust: trust)) }
            #expect(error?.kind == .redisUnavailable)
            #expect(error?.message.contains("Unknown command '\(words[0])'") == true, "\(error?.message ?? "")")
        }
    }

    @Test(
        "What stands in the place of a file, or what others could have changed, is refused by its name and left alone",
        arguments: [
            ("ln -sf ../../../victim redis.log", "redis.log is a symbolic link"),
            ("rm redis.log && mkfifo redis.log", "redis.log is not a regular file"),
            ("rm redis.log && ln ../../../victim redis.log", "redis.log has 2 names"),
            ("ln -sf ../../../victim server.lock", "server.lock: a symbolic link"),
            ("rm server.lock && mkfifo server.lock", "server.lock is not a regular file"),
            ("rm redis.json && mkfifo redis.json", "redis.json is not a regular file"),
            ("ln -s ../../../victim redis.conf", "redis.conf is a symbolic link"),
            ("mkfifo dump.rdb", "dump.rdb is not a regular file"),
            ("touch users.acl && chmod 666 users.acl", "users.acl can be written by others"),
            ("chmod 770 .", "redis can be written by others"),
            ("chmod 770 appendonlydir", "appendonlydir can be written by others"),
            ("mv appendonlydir ../../../other && ln -s ../../../other appendonlydir", "appendonlydir"),
            (
                "rm appendonlydir/*.incr.aof && mkfifo appendonlydir/appendonly.aof.1.incr.aof",
                "appendonlydir/appendonly.aof.1.incr.aof is not a regular file"
            ),
            ("mkdir modules", "modules is not a regular file"),
        ])
    func tampered(change: String, fault: String) async throws {
        try await make()
        directory.write(Array("mine\n".utf8), to: "victim")
        try await shell("cd cache/.prefetch/redis && \(change)")
        for trust in [CacheAdmission.Trust.none, .standing] {
            let start = ContinuousClock.now
            let error = await #expect(throws: PrefetchError.self) { try await attach(nil, terms(trust: trust)) }
            #expect(
                error?.kind == .cacheUnavailable && error?.message.contains(fault) == true, "\(error?.message ?? "")")
            #expect(ContinuousClock.now - start < .seconds(5))
        }
        #expect(directory.read("victim") == Array("mine\n".utf8) && aside() == [] && notices.all == [])
    }

    @Test(
        "Links on the way to the folder are not followed, and another user's folder is not used",
        arguments: [
            "mv cache/.prefetch other && ln -s ../other cache/.prefetch",
            "mv cache/.prefetch/redis other && ln -s ../../other cache/.prefetch/redis",
            "mv cache/.prefetch/redis other && mkfifo cache/.prefetch/redis",
            // Where this test is not root it may not give files away.
            "chown -R 65534 cache/.prefetch/redis || (mv cache/.prefetch/redis other && touch cache/.prefetch/redis)",
        ])
    func foreign(change: String) async throws {
        try await make()
        try await shell("\(change); mkdir -p other; find other -printf '%p %s %C@\\n' | sort >before")
        for trust in [CacheAdmission.Trust.none, .given, .standing] {
            let error = await #expect(throws: PrefetchError.self) { try await attach(nil, terms(trust: trust)) }
            #expect(error?.kind == .cacheUnavailable, "\(error?.message ?? "")")
        }
        try await shell("find other -printf '%p %s %C@\\n' | sort | cmp - before")
        #expect(notices.all == [])
    }

    @Test("A socket that only a stranger can have is not asked")
    func foreignSocket() async throws {
        let stranger = try await RedisServer()
        let folder = try await PrivateRedisFolder.admit(cache: cache, terms())
        #expect(!folder.isOurs(socket: stranger.socketPath) && folder.isOurs(socket: folder.socket))
        #expect(!folder.isOurs(socket: "/tmp/redis.sock") && !folder.isOurs(socket: "redis.sock"))
        // By another name of the same folder, as a container has it.
        #expect(folder.isOurs(socket: cache + "/../cache/.prefetch/redis/redis.sock"))
        // In a folder where others can put another in its place the socket is elsewhere.
        chmod(directory.path, 0o777)
        let other = try await PrivateRedisFolder.admit(cache: cache, terms())
        #expect(other.socket.hasPrefix("/tmp/prefetch-\(geteuid())/"))
        #expect(!other.isOurs(socket: folder.socket) && other.isOurs(socket: other.socket))
        chmod(directory.path, 0o700)
    }

    @Test(
        "Without a list of one's own there is no telling what was made here, which the error says",
        arguments: ["touch state", "ln -s /tmp state", "mkdir -m 777 state", "mkdir other && ln -s other state"])
    func noState(change: String) async throws {
        try await shell(change)
        let error = await #expect(throws: PrefetchError.self) { try await attach() }
        #expect(error?.kind == .configuration && error?.message.contains("/state") == true, "\(error?.message ?? "")")
        #expect(error?.hint.contains("XDG_STATE_HOME") == true && error?.hint.contains("--trust-cache") == true)
        #expect(access(data, F_OK) != 0)
        #expect(try await value(nil, terms(trust: .standing)) == nil)
        try await shell("rm -rf state")
        let none = await #expect(throws: PrefetchError.self) {
            try await attach(nil, CacheAdmission(state: StateFolder(path: nil)))
        }
        #expect(none?.kind == .configuration && none?.message.contains("no home folder") == true)
    }

    @Test("The state folder is where the base directory specification has it")
    func stateFolder() {
        func path(_ variables: [String: String]) -> String? { StateFolder { variables[$0] }.path }
        #expect(path(["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/s/prefetch")
        #expect(path(["XDG_STATE_HOME": "relative", "HOME": "/h"]) == "/h/.local/state/prefetch")
        #expect(path(["HOME": "/"]) == "/.local/state/prefetch")
        // By the user database.
        #expect(path([:])?.hasSuffix("/.local/state/prefetch") == true)
    }

    @Test("A list of ten thousand caches forgets those that are gone first")
    func longList() async throws {
        try await make()
        let old = String(decoding: directory.read("state/caches") ?? [], as: UTF8.self)
        let gone = (0..<10_000).map { "\($0) /nowhere/\($0)\n" }.joined()
        directory.write(Array((old + gone).utf8), to: "state/caches")
        let other = try await attach(directory.path("other"))
        await other.leave()
        #expect(try await value() == "v")
        let lines = String(decoding: directory.read("state/caches") ?? [], as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 2 && notices.all == [])
    }
}

private final class Notices: Sendable {
    private let sentences = Locked<[String]>([])
    var all: [String] { sentences.withLock { $0 } }

    func add(_ sentence: String) { sentences.withLock { $0.append(sentence) } }
}
