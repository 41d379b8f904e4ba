import Glibc
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("The state of runs", .timeLimit(.minutes(5)))
struct RunStateTests {
    private let directory = TemporaryDirectory()
    private let notices = Notices()
    private var cache: String { directory.path("cache") }
    private var state: StateFolder { StateFolder(path: directory.path("state")) }
    private var id: String { CacheDirectory.existing(cache)?.id ?? "none" }
    private var data: String { "state/\(id)/redis" }

    init() { signal(SIGPIPE, SIG_IGN) }

    private func open(_ cache: String? = nil, _ state: String = "state") throws(PrefetchError) -> RunState {
        try RunState.open(cache ?? self.cache, in: StateFolder(path: directory.path(state))) { notices.add($0) }
    }

    /// The value under `k`, with the server that has it started and ended.
    private func value(_ cache: String? = nil) async throws -> String? {
        let user = try await PrivateRedis.attach(open(cache))
        let value = try await user.connection.command(["GET", "k"]).string
        await user.leave()
        return value
    }

    /// Makes the cache and its state, with `v` under `k`.
    private func make() async throws {
        let user = try await PrivateRedis.attach(open())
        try await user.connection.command(["SET", "k", "v"])
        await user.leave()
    }

    private func shell(_ command: String) async throws {
        let child = try await ChildProcess("/bin/sh", ["-c", "cd '\(directory.path)' && \(command)"])
        try #require(await child.wait() == .exited(0), "\(command): \(child.stderr)")
    }

    @Test(
        "A cache folder has images and nothing of a run; the state is this user's alone, and the folders have these modes"
    )
    func places() async throws {
        #expect(try RunState.existing(cache, in: state) == nil && !RunState.exists(cache, in: state))
        try await make()
        #expect(RunState.exists(cache, in: state))
        #expect(try RunState.existing(cache, in: state)?.lists() == directory.path("state/\(id)/lists"))
        #expect(
            directory.contents().filter { $0.hasPrefix("cache/") && !$0.hasPrefix("cache/.prefetch/locks/") }
                == [
                    "cache/", "cache/.prefetch/", "cache/.prefetch/account", "cache/.prefetch/id",
                    "cache/CACHEDIR.TAG", "cache/v1/",
                ])
        for (path, mode) in [
            ("state", 0o700), ("state/\(id)", 0o700), ("state/\(id)/place", 0o600), (data, 0o700),
            ("state/\(id)/lists", 0o700), ("\(data)/redis.log", 0o600),
            ("\(data)/appendonlydir/appendonly.aof.manifest", 0o600),
        ] {
            var status = stat()
            #expect(lstat(directory.path(path), &status) == 0 && Int(status.st_mode & 0o777) == mode, "\(path)")
        }
    }

    @Test("A cache that was moved, renamed or mounted elsewhere goes on, by whatever path")
    func moved() async throws {
        try await make()
        let first = id
        try await shell("ln -s cache link && mkdir mount")
        #expect(try await value(directory.path("link")) == "v")
        #expect(try await value(cache + "/../cache/") == "v")
        try await shell("mv cache other")
        #expect(try RunState.existing(directory.path("other"), in: state)?.cache == directory.path("other"))
        #expect(try await value(directory.path("other")) == "v")
        // As over file systems: another inode, and nothing is left in the old place.
        try await shell("cp -a other moved && rm -r other")
        #expect(try await value(directory.path("moved")) == "v")
        #expect(CacheDirectory.existing(directory.path("moved"))?.id == first && notices.all == [])
        // Another inode in the same place: unpacked from a backup.
        try await shell("cp -a moved new && rm -r moved && mv new moved")
        #expect(try await value(directory.path("moved")) == "v")
        #expect(notices.all == [])
    }

    @Test("A copy of a cache that is still there gets an identity of its own, once, from the first run in it")
    func copied() async throws {
        try await make()
        let first = id
        try await shell("cp -a cache copy")
        let copy = directory.path("copy")
        #expect(try RunState.existing(copy, in: state) == nil && CacheDirectory.existing(copy)?.id == first)
        let state = state
        let notices = notices
        let states = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<6 {
                group.addTask { try RunState.open(copy, in: state) { notices.add($0) }.folder.path }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        let second = try #require(CacheDirectory.existing(copy)?.id)
        #expect(second != first && states == [directory.path("state/\(second)")])
        #expect(
            notices.all == ["\(copy) is a copy of \(cache): it has an identity of its own now, and its runs begin anew"]
        )
        #expect(try await value(copy) == nil)
        #expect(try await value() == "v")
        var status = stat()
        #expect(stat(copy + "/.prefetch/id", &status) == 0 && status.st_mode & 0o777 == 0o444)
    }

    @Test("A stranger's folder with the identity of a cache of mine is a copy, and has nothing of its state")
    func stranger() async throws {
        try await make()
        try await shell("mkdir -p foreign/.prefetch && cp cache/.prefetch/id foreign/.prefetch/")
        #expect(try await value(directory.path("foreign")) == nil)
        #expect(notices.all.count == 1 && CacheDirectory.existing(directory.path("foreign"))?.id != id)
        #expect(try await value() == "v")
    }

    @Test(
        "An identity that is none is no part of a path: the folder cannot be used, and nothing is made",
        arguments: ["../../../../tmp/x", "0123456789abcdef0123456789abcdeg", "", "0123456789ABCDEF0123456789ABCDEF"])
    func wrongIdentity(text: String) async throws {
        try await shell("mkdir -p cache/.prefetch && printf '%s\\n' '\(text)' >cache/.prefetch/id")
        let error = #expect(throws: PrefetchError.self) { try open() }
        #expect(error?.kind == .cacheUnavailable && error?.message.contains(cache) == true, "\(error?.message ?? "")")
        #expect(directory.contents().allSatisfy { !$0.hasPrefix("state/") || $0 == "state/" || $0.hasSuffix(".lock") })
    }

    @Test("Two users of this machine have a state each of one cache")
    func users() async throws {
        try await make()
        let other = try await PrivateRedis.attach(open(nil, "b"))
        #expect(try await other.connection.command(["GET", "k"]).string == nil)
        #expect(try await value() == "v")
        await other.leave()
        #expect(CacheDirectory.existing(cache)?.id == id && notices.all == [])
    }

    @Test("Commands that reach beyond the queue are not there")
    func removedCommands() async throws {
        let user = try await PrivateRedis.attach(open())
        for command in PrivateRedis.removedCommands {
            let error = await #expect(throws: RedisError.self) {
                try await user.connection.command([RedisArgument(command), "x", "y"])
            }
            #expect(error?.message.contains("unknown command") == true, "\(command): \(error?.message ?? "")")
        }
        await user.leave()
    }

    @Test(
        "An append-only file that has one of them is refused",
        arguments: [
            ["MODULE", "LOAD", "./evil.so"], ["REPLICAOF", "127.0.0.1", "1"], ["CONFIG", "SET", "dir", "/tmp"],
            ["SLAVEOF", "127.0.0.1", "1"], ["DEBUG", "SEGFAULT"], ["FUNCTION", "FLUSH"], ["ACL", "SETUSER", "x"],
        ])
    func commandInLog(words: [String]) async throws {
        try await make()
        let file = try #require(fopen(directory.path(data) + "/appendonlydir/appendonly.aof.1.incr.aof", "a"))
        fputs("*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined(), file)
        fclose(file)
        let error = await #expect(throws: PrefetchError.self) { try await value() }
        #expect(error?.kind == .redisUnavailable)
        #expect(error?.message.contains("Unknown command '\(words[0])'") == true, "\(error?.message ?? "")")
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
        try await shell("cd \(data) && \(change)")
        let start = ContinuousClock.now
        let error = await #expect(throws: PrefetchError.self) { try await value() }
        #expect(error?.kind == .cacheUnavailable && error?.message.contains(fault) == true, "\(error?.message ?? "")")
        #expect(ContinuousClock.now - start < .seconds(5))
        #expect(directory.read("victim") == Array("mine\n".utf8) && notices.all == [])
    }

    @Test(
        "Links on the way to the data are not followed, and another user's folder is not used",
        arguments: [
            "mv state other && ln -s other state", "mv $S other && ln -s ../other $S",
            "mv $S/redis other && ln -s ../../other $S/redis", "mv $S/redis other && mkfifo $S/redis",
            "chmod 777 state", "chmod 770 $S", "mv $S other && touch $S",
            // Where this test is not root it may not give files away.
            "chown -R 65534 $S || (mv $S other && touch $S)", "chown -R 65534 state || chmod 777 state",
        ])
    func foreign(change: String) async throws {
        try await make()
        try await shell("S=state/\(id); \(change); mkdir -p other; find other -printf '%p %s %C@\\n' | sort >before")
        let error = await #expect(throws: PrefetchError.self) { try await value() }
        #expect(error?.kind == .cacheUnavailable, "\(error?.message ?? "")")
        #expect(
            error?.hint.contains("--state") == true || error?.hint.contains("chmod") == true, "\(error?.hint ?? "")")
        try await shell("find other -printf '%p %s %C@\\n' | sort | cmp - before")
        #expect(notices.all == [])
    }

    @Test("A socket that only a stranger can have is not asked")
    func foreignSocket() async throws {
        let stranger = try await RedisServer()
        let folder = try open().redis()
        #expect(!folder.isOurs(socket: stranger.socketPath) && folder.isOurs(socket: folder.socket))
        #expect(!folder.isOurs(socket: "/tmp/redis.sock") && !folder.isOurs(socket: "redis.sock"))
        // By another name of the same folder, as a container has it.
        #expect(folder.isOurs(socket: directory.path("state/../state/\(id)/redis/redis.sock")))
        // In a folder where others can put another in its place the socket is elsewhere.
        chmod(directory.path, 0o777)
        let other = try open().redis()
        #expect(other.socket.hasPrefix("/tmp/prefetch-\(geteuid())/"))
        #expect(!other.isOurs(socket: folder.socket) && other.isOurs(socket: other.socket))
        chmod(directory.path, 0o700)
    }

    @Test(
        "A folder of the usual name in /tmp that others made stops nobody: the socket has one of its own, and later owners find it"
    )
    func takenSocketFolder() throws {
        let data = try open().redis().data
        let usual = directory.path("prefetch-\(geteuid())")
        func socket() throws -> String { try PrivateRedisFolder.shortSocket(for: data, in: directory.path) }
        let first = try socket()
        #expect(first.hasPrefix("\(usual)/"))
        // As a stranger has it who waited for this.
        chmod(usual, 0o755)
        let other = try socket()
        #expect(other.hasPrefix("\(usual)-") && other.utf8.count == first.utf8.count + 7)
        #expect(try socket() == other)
        // What is remembered is gone, or was made by somebody else since.
        chmod(String(other.prefix(usual.utf8.count + 7)), 0o755)
        #expect(try socket() != other)
        chmod(usual, 0o700)
        unlink(data.path + "/socket-folder")
        #expect(try socket() == first)
    }

    @Test(
        "A folder that cannot be a state is named, with the option that names another",
        arguments: ["touch state", "ln -s /tmp state", "mkdir -m 777 state", "mkdir other && ln -s other state"])
    func noState(change: String) async throws {
        try await shell(change)
        let error = #expect(throws: PrefetchError.self) { try open() }
        #expect(
            error?.kind == .cacheUnavailable && error?.message.contains("/state") == true, "\(error?.message ?? "")")
        #expect(error?.hint.contains("--state DIR (PREFETCH_STATE)") == true)
        let none = #expect(throws: PrefetchError.self) { try RunState.open(cache, in: StateFolder(path: nil)) }
        #expect(none?.kind == .cacheUnavailable && none?.message.contains("no home folder") == true)
    }

    @Test("The state folder is where the base directory specification has it, or where it is named")
    func stateFolder() {
        func path(_ variables: [String: String]) -> String? { StateFolder { variables[$0] }.path }
        #expect(path(["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/s/prefetch")
        #expect(path(["XDG_STATE_HOME": "relative", "HOME": "/h"]) == "/h/.local/state/prefetch")
        #expect(path(["HOME": "/"]) == "/.local/state/prefetch")
        // By the user database.
        #expect(path([:])?.hasSuffix("/.local/state/prefetch") == true)
        #expect(StateFolder(path: "a/b").path?.hasSuffix("/a/b") == true)
    }
}

private final class Notices: Sendable {
    private let sentences = Locked<[String]>([])
    var all: [String] { sentences.withLock { $0 } }

    func add(_ sentence: String) { sentences.withLock { $0.append(sentence) } }
}
