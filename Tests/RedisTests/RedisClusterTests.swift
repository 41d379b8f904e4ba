@testable import Redis
import TestSupport
import Testing

@Suite("Redis Cluster", .timeLimit(.minutes(5)))
struct RedisClusterTests {
    private func connection(_ url: String, following key: String?) throws -> RedisConnection {
        RedisConnection(try RedisConfiguration(url: url), name: "test", following: key)
    }

    @Test("Given any node, a connection finds the one that has its key, and keeps it")
    func finding() async throws {
        let cluster = try await RedisCluster()
        var owners: Set<Int> = []
        for index in 0..<12 {
            let key = "prefetch:{q\(index)}"
            let owner = try #require(try await cluster.owner(of: key))
            owners.insert(owner)
            let redis = try connection(cluster.url(index % 3), following: key)
            #expect(try await redis.serverFacts().isCluster)
            #expect(try await redis.endpoint == RedisConfiguration(url: cluster.url(owner)).endpoint)
            #expect(try await redis.command(["SET", RedisArgument(key), "1"]) == .status("OK"))
            #expect(try await redis.command(["DBSIZE"]).int ?? 0 > 0)
        }
        #expect(owners == [0, 1, 2])
        // By a Unix socket the other nodes are found too.
        for index in 0..<12 {
            let key = "prefetch:{q\(index)}"
            let redis = try connection(cluster.servers[0].url, following: key)
            #expect(try await redis.command(["GET", RedisArgument(key)]).int == 1)
        }
        // Without a key it goes where the first command sends it.
        let free = try connection(cluster.url(1), following: nil)
        for index in 0..<12 {
            #expect(try await free.command(["GET", RedisArgument("prefetch:{q\(index)}")]).int == 1)
        }
        let database = await #expect(throws: RedisError.self) {
            try await connection("\(cluster.url(0))/3", following: "x").command(["PING"])
        }
        #expect(database?.code == .configuration && database?.message.contains("has no database 3") == true)
        #expect(database?.hint?.contains("--queue") == true)
    }

    @Test("While a slot moves its keys wait; when it has moved, each command runs once, at its new node")
    func moving() async throws {
        let cluster = try await RedisCluster()
        let key = "{queue}"
        let owner = try #require(try await cluster.owner(of: key))
        let target = (owner + 1) % 3
        let redis = try connection(cluster.url((owner + 2) % 3), following: key)
        let waiter = try connection(cluster.url(target), following: key)
        for part in 0..<10 { try await redis.command(["SET", RedisArgument("\(key)\(part)"), RedisArgument(part)]) }
        let script = RedisScript(name: "count", source: "return redis.call('INCR', KEYS[1] .. ':n')")
        #expect(try await redis.run(script, keys: [RedisArgument(key)]) == .integer(1))
        async let bell = waiter.blocking(["BLPOP", "{queue}bell", 30], timeout: .seconds(30))
        try await until {
            try await (cluster.command(owner, "INFO", "clients").string ?? "").contains("blocked_clients:1")
        }
        try await cluster.move(slotOf: key, to: target) {
            // The script's own key is nowhere, half of the others are gone: it must run neither here nor there.
            let error = await #expect(throws: RedisError.self) {
                try await redis.run(script, keys: [RedisArgument(key)])
            }
            #expect(error?.replyCode == "ASK" && error?.isTransient == true)
            // A connection that begins meanwhile stays with the node that still answers for the slot.
            let late = try connection(cluster.url(target), following: key)
            let again = await #expect(throws: RedisError.self) {
                try await late.run(script, keys: [RedisArgument(key)])
            }
            #expect(again?.replyCode == "ASK")
        }
        let replies = try await redis.pipeline([["TIME"]] + (0..<10).map { ["INCR", RedisArgument("\(key)\($0)")] })
        #expect(replies[0].array?.count == 2)
        #expect(replies.dropFirst().map(\.int) == (1...10).map { $0 })
        #expect(try await redis.endpoint == RedisConfiguration(url: cluster.url(target)).endpoint)
        #expect(try await redis.run(script, keys: [RedisArgument(key)]) == .integer(2))
        try await redis.command(["RPUSH", "{queue}bell", "1"])
        #expect(try await bell.array?.last?.string == "1")
    }

    @Test("Nodes that send each other's clients on are an error that says so, and can be repaired")
    func circle() async throws {
        let cluster = try await RedisCluster()
        let key = "{round}"
        let owner = try #require(try await cluster.owner(of: key))
        let other = (owner + 1) % 3
        let slot = "\(try await cluster.slot(of: key))"
        let redis = try connection(cluster.url(owner), following: key)
        try await redis.command(["PING"])
        let (ownID, otherID) = (
            try await cluster.command(owner, "CLUSTER", "MYID").string ?? "",
            try await cluster.command(other, "CLUSTER", "MYID").string ?? ""
        )
        try await cluster.command(owner, "CLUSTER", "SETSLOT", slot, "NODE", otherID)
        for late in [redis, try connection(cluster.url(other), following: key)] {
            let error = await #expect(throws: RedisError.self) { try await late.command(["GET", RedisArgument(key)]) }
            #expect(error?.message.contains("round in a circle") == true && error?.hint != nil)
            #expect(error?.isTransient == true && error?.outcomeUnknown == false)
        }
        try await cluster.command(owner, "CLUSTER", "SETSLOT", slot, "NODE", ownID)
        #expect(try await redis.command(["GET", RedisArgument(key)]) == .null)
    }

    @Test("A master that dies is replaced by its replica, also where it was the one address given")
    func takeover() async throws {
        let cluster = try await RedisCluster(masters: 3, replicas: 1)
        // The replica is the first master's.
        let key = try await self.key(servedBy: 0, in: cluster)
        let redis = try connection(cluster.url(0), following: key)
        try await redis.command(["SET", RedisArgument(key), "before"])
        // A replica sends to its master, whoever asks it.
        let viaReplica = try connection(cluster.url(3), following: key)
        #expect(try await viaReplica.command(["SET", RedisArgument(key), "kept"]) == .status("OK"))
        try await redis.command(["WAIT", 1, 5000])
        await cluster.kill9(0)
        let reply = try await withRetry { () async throws(RedisError) in
            try await redis.command(["GET", RedisArgument(key)])
        }
        #expect(reply.string == "kept")
        #expect(try await redis.endpoint == RedisConfiguration(url: cluster.url(3)).endpoint)
        #expect(try await redis.command(["SET", RedisArgument(key), "after"]) == .status("OK"))
    }

    private func key(servedBy owner: Int, in cluster: RedisCluster) async throws -> String {
        for index in 0..<100 {
            let key = "prefetch:{q\(index)}"
            if try await cluster.owner(of: key) == owner { return key }
        }
        throw RedisError(.reply, "no key")
    }

    @Test(
        "Where another node is named, its address is read as servers write it",
        arguments: [
            ("MOVED 3999 127.0.0.1:6381", "redis://h:1", "redis://127.0.0.1:6381"),
            ("MOVED 3999 :6381", "redis://h:1", "redis://h:6381"),
            ("MOVED 3999 :6381", "unix:///s", "redis://127.0.0.1:6381"),
            ("MOVED 3999 ::1:6381", "redis://h:1", "redis://[::1]:6381"),
            ("MOVED 3999 ?:6381", "redis://h:1", nil), ("MOVED 3999 h:0", "redis://h:1", nil),
            ("MOVED 3999 h:99999", "redis://h:1", nil), ("MOVED", "redis://h:1", nil),
            ("ASK 3999 127.0.0.1:6381", "redis://h:1", nil), ("ERR MOVED 1 h:1", "redis://h:1", nil),
        ] as [(String, String, String?)])
    func redirections(text: String, from: String, to: String?) throws {
        let node = try RedisConfiguration(url: from).endpoint
        let expected = try to.map { try RedisConfiguration(url: $0).endpoint }
        #expect(RedisReplyError(text).redirection(from: node) == expected)
    }
}
