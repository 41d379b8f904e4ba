import Redis
import TestSupport
import Testing

@Suite("Redis scripts", .timeLimit(.minutes(5)))
struct RedisScriptTests {
    private static let increment = RedisScript(
        name: "increment", source: "return redis.call('INCRBY', KEYS[1], ARGV[1])")
    private static let fail = RedisScript(name: "fail", source: "return redis.error_reply('SORRY no')")

    private func connection() async throws -> (RedisServer, RedisConnection) {
        let server = try await RedisServer()
        return (server, RedisConnection(try RedisConfiguration(url: server.url), name: "test"))
    }

    @Test("A script runs by its digest and survives SCRIPT FLUSH")
    func flush() async throws {
        let (server, redis) = try await connection()
        #expect(try await redis.run(Self.increment, keys: ["n"], arguments: [2]) == .integer(2))
        try await redis.command(["SCRIPT", "FLUSH"])
        try await redis.command(["CONFIG", "RESETSTAT"])
        #expect(try await redis.run(Self.increment, keys: ["n"], arguments: [3]) == .integer(5))
        #expect(try await redis.run(Self.increment, keys: ["n"], arguments: [4]) == .integer(9))
        let stats = try await redis.command(["INFO", "commandstats"]).string ?? ""
        #expect(stats.contains("cmdstat_eval:calls=1,"))
        #expect(stats.contains("cmdstat_evalsha:calls=2,"))
        #expect(!stats.contains("script|load"))
        _ = server
    }

    @Test("In a pipeline only the calls the server did not know run again, each once")
    func pipeline() async throws {
        let (server, redis) = try await connection()
        let other = RedisScript(name: "other", source: "return ARGV[1] .. redis.call('INCR', KEYS[1])")
        try await redis.run(other, keys: ["m"], arguments: ["x"])
        try await redis.run(Self.increment, keys: ["n"], arguments: [1])
        try await redis.command(["SCRIPT", "FLUSH"])
        try await redis.command(["SCRIPT", "LOAD", RedisArgument(other.source)])
        let calls = (0..<200).map { index in
            index.isMultiple(of: 2)
                ? RedisScriptCall(Self.increment, keys: ["n"], arguments: [1])
                : RedisScriptCall(other, keys: ["m"], arguments: ["x"])
        }
        let values = try await redis.run(calls + [RedisScriptCall(Self.fail, keys: [])])
        #expect(values.last?.error?.code == "SORRY")
        #expect(try await redis.command(["MGET", "n", "m"]).array?.map(\.int) == [101, 101])
        #expect(values[198] == .integer(101))
        #expect(values[199].string == "x101")
        _ = server
    }

    @Test("An error of a script is thrown, one that does not compile names the script")
    func errors() async throws {
        let (server, redis) = try await connection()
        let sorry = await #expect(throws: RedisError.self) { try await redis.run(Self.fail, keys: []) }
        #expect(sorry?.replyCode == "SORRY")
        let broken = RedisScript(name: "broken", source: "this is no Lua")
        let error = await #expect(throws: RedisError.self) { try await redis.run(broken, keys: []) }
        #expect(error?.message.contains("script broken") == true)
        _ = server
    }

    @Test("A full server still learns and runs scripts that may run then")
    func fullServer() async throws {
        let server = try await RedisServer(options: ["--maxmemory", "100kb"])
        let redis = RedisConnection(try RedisConfiguration(url: server.url), name: "test")
        let drain = RedisScript(name: "drain", source: "#!lua flags=allow-oom\nreturn redis.call('INCR', KEYS[1])")
        #expect(try await redis.run(drain, keys: ["n"]) == .integer(1))
        let push = RedisScript(name: "push", source: "#!lua\nreturn redis.call('INCR', KEYS[1])")
        let error = await #expect(throws: RedisError.self) { try await redis.run(push, keys: ["n"]) }
        #expect(error?.code == .outOfMemory)
    }

    @Test("Facts of a server decide whether a queue can live there")
    func facts() async throws {
        let server = try await RedisServer(options: ["--maxmemory", "100mb"])
        let redis = RedisConnection(try RedisConfiguration(url: server.url), name: "test")
        var facts = try await redis.serverFacts()
        #expect(facts.version.hasPrefix("7") || facts.version.hasPrefix("8"))
        #expect(facts.maxmemory == 100 << 20 && facts.usedMemory > 0 && !facts.isLoading && !facts.isCluster)
        #expect(try facts.check().count == 1)
        facts.isAOFEnabled = true
        #expect(try facts.check() == [])
        facts.maxmemoryPolicy = "allkeys-lru"
        let eviction = #expect(throws: RedisError.self) { try facts.check() }
        #expect(eviction?.code == .configuration && eviction?.hint?.contains("noeviction") == true)
        #expect(try facts.check(allowsEviction: true).count == 1)
        facts.version = "6.2.14"
        let old = #expect(throws: RedisError.self) { try facts.check(allowsEviction: true) }
        #expect(old?.message.contains("6.2.14") == true && old?.hint != nil)
    }
}
