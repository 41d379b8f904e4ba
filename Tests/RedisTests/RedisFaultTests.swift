import Redis
import TestSupport
import Testing

@Suite("Redis connection under faults", .timeLimit(.minutes(5)))
struct RedisFaultTests {
    private func connection(to url: String, timeout: Duration = .seconds(5)) throws -> RedisConnection {
        var configuration = try RedisConfiguration(url: url)
        configuration.commandTimeout = timeout
        return RedisConnection(configuration, name: "test")
    }

    @Test("A restarted server costs one error, then the connection is back")
    func restart() async throws {
        let server = try await RedisServer(appendOnly: true)
        let redis = try connection(to: server.url)
        try await redis.command(["SET", "k", "v"])
        try await server.restart()
        let error = await #expect(throws: RedisError.self) { try await redis.command(["GET", "k"]) }
        #expect(error?.code == .unavailable && error?.isTransient == true)
        #expect(try await redis.command(["GET", "k"]).string == "v")
    }

    @Test("A server killed in the middle of a command leaves an unknown outcome")
    func killedInCommand() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url)
        try await redis.command(["PING"])
        let task = Task { try await redis.blocking(["BLPOP", "never", 20], timeout: .seconds(20)) }
        try await untilBlocked(server)
        await server.kill9()
        let error = await #expect(throws: RedisError.self) { try await task.value }
        #expect(error?.code == .unavailable && error?.outcomeUnknown == true)
        try await server.start()
        #expect(try await redis.command(["PING"]) == .status("PONG"))
    }

    @Test("A late reply never answers the next command")
    func lateReply() async throws {
        let server = try await RedisServer()
        let proxy = FaultProxy(target: server.socketPath)
        let redis = try connection(to: proxy.url, timeout: .milliseconds(150))
        for round in 0..<5 {
            #expect(try await patient(redis, ["ECHO", "calm"]).string == "calm")
            proxy.arm(.delayReply(milliseconds: 250))
            let error = await #expect(throws: RedisError.self) {
                try await redis.command(["SET", "late", RedisArgument(round)])
            }
            #expect(error?.code == .timedOut && error?.outcomeUnknown == true && error?.isTransient == true)
            for k in 0..<20 { #expect(try await patient(redis, ["ECHO", RedisArgument(k)]).int == k) }
        }
        #expect(proxy.triggered == 5)
        #expect(try await patient(redis, ["GET", "late"]).int == 4)
    }

    @Test("A server that admits no more clients is quoted, with or without a password, whichever end is faster")
    func fullServer() async throws {
        let server = try await RedisServer()
        let first = try connection(to: server.url)
        try await first.command(["PING"])
        try await first.command(["CONFIG", "SET", "maxclients", "1"])
        for round in 0..<40 {
            var configuration = try RedisConfiguration(url: server.url)
            if round % 2 == 1 { configuration.password = "secret" }
            let key = round % 4 < 2 ? nil : "{q}"
            let redis = RedisConnection(configuration, name: "test", following: key)
            let error = await #expect(throws: RedisError.self) { try await redis.command(["PING"]) }
            #expect(error?.code == .transient, "\(String(describing: error))")
            #expect(error?.message.contains("max number of clients reached") == true, "\(String(describing: error))")
        }
    }

    @Test("A frozen server times out, and answers again when it continues")
    func frozen() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url, timeout: .milliseconds(100))
        _ = try await patient(redis, ["PING"])
        server.freeze()
        let error = await #expect(throws: RedisError.self) { try await redis.command(["INCR", "n"]) }
        #expect(error?.code == .timedOut)
        server.thaw()
        // The frozen server still had the command in its socket: that is what "unknown outcome" means.
        let count = try await patient(redis, ["GET", "n"])
        #expect(count.int == 1 || count == .null)
    }

    @Test("A cut at any point is an unknown outcome, and the next command works", arguments: 0..<4)
    func cuts(kind: Int) async throws {
        let faults: [FaultProxy.Fault] = [.cutBeforeRequest, .cutBeforeReply, .cutMidReply, .swallowReply]
        let server = try await RedisServer()
        let proxy = FaultProxy(target: server.socketPath)
        let redis = try connection(to: proxy.url, timeout: kind == 3 ? .milliseconds(200) : .seconds(5))
        _ = try await patient(redis, ["PING"])
        proxy.arm(faults[kind])
        let error = await #expect(throws: RedisError.self) { try await redis.command(["INCR", "n"]) }
        #expect(error?.outcomeUnknown == true && error?.isTransient == true)
        #expect(try await patient(redis, ["GET", "n"]).int == (kind == 0 ? nil : 1))
    }

    @Test("interrupt() ends a blocking call at once, and the connection works again")
    func interrupt() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url)
        let task = Task {
            try await redis.blocking(["BLMOVE", "bell", "bell", "RIGHT", "RIGHT", 30], timeout: .seconds(30))
        }
        try await untilBlocked(server)
        let start = ContinuousClock.now
        redis.interrupt()
        let error = await #expect(throws: RedisError.self) { try await task.value }
        #expect(error?.code == .interrupted && error?.isTransient == false)
        #expect(ContinuousClock.now - start < .seconds(2))
        #expect(try await redis.command(["PING"]) == .status("PONG"))
        redis.interrupt()
        #expect(try await redis.command(["PING"]) == .status("PONG"))
    }

    @Test("An interrupt after the check whether to wait ends the wait, though it came before the wait began")
    func interruptedBefore() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url)
        let before = redis.interrupts
        redis.interrupt()
        let error = await #expect(throws: RedisError.self) {
            try await redis.blocking(["BLPOP", "a", 30], timeout: .seconds(30), since: before)
        }
        #expect(error?.code == .interrupted && redis.interrupts == before + 1)
        #expect(try await redis.blocking(["BLPOP", "a", RedisArgument("0.05")], timeout: .milliseconds(50)) == .null)
    }

    @Test("Cancelling the task ends a blocking call, also one that has not begun")
    func cancellation() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url)
        let first = Task { try await redis.blocking(["BLPOP", "a", 30], timeout: .seconds(30)) }
        try await untilBlocked(server)
        let second = Task { try await redis.blocking(["BLPOP", "a", 30], timeout: .seconds(30)) }
        second.cancel()
        first.cancel()
        for task in [first, second] {
            let error = await #expect(throws: RedisError.self) { try await task.value }
            #expect(error?.code == .interrupted)
        }
    }

    @Test("A blocking call outlives the timeout of commands and sees its element")
    func blocking() async throws {
        let server = try await RedisServer()
        let waiter = try connection(to: server.url, timeout: .milliseconds(300))
        let other = try connection(to: server.url)
        async let reply = waiter.blocking(["BLPOP", "a", 20], timeout: .seconds(20))
        try await untilBlocked(server)
        try await other.command(["RPUSH", "a", "x"])
        #expect(try await reply.array?.last?.string == "x")
        #expect(try await waiter.blocking(["BLPOP", "a", RedisArgument("0.05")], timeout: .milliseconds(50)) == .null)
    }

    @Test("withRetry waits for a server that comes later, and gives up at its deadline")
    func retry() async throws {
        let server = try await RedisServer(appendOnly: true)
        let redis = try connection(to: server.url)
        await server.kill9()
        let error = await #expect(throws: RedisError.self) {
            try await withRetry(until: .now + .milliseconds(80)) { () async throws(RedisError) in
                try await redis.command(["PING"])
            }
        }
        #expect(error?.code == .unavailable)
        async let reply = withRetry { () async throws(RedisError) in try await redis.command(["PING"]) }
        try await server.start()
        #expect(try await reply == .status("PONG"))
        let task = Task {
            try await withRetry { () async throws(RedisError) -> RedisValue in throw RedisError(.transient, "LOADING") }
        }
        task.cancel()
        await #expect(throws: RedisError.self) { try await task.value }
        var tries = 0
        await #expect(throws: RedisError.self) {
            try await withRetry { () async throws(RedisError) -> RedisValue in
                tries += 1
                throw RedisError(.reply, "ERR")
            }
        }
        #expect(tries == 1)
    }

    /// With a short timeout a busy machine alone is enough to be late: what is not under test is asked again.
    private func patient(_ redis: RedisConnection, _ command: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await withRetry { () async throws(RedisError) in try await redis.command(command) }
    }

    /// Until the server has a client in a blocking command, as INFO counts them.
    private func untilBlocked(_ server: RedisServer) async throws {
        let monitor = try connection(to: server.url)
        try await until {
            try await (monitor.command(["INFO", "clients"]).string ?? "").contains("blocked_clients:1")
        }
    }
}
