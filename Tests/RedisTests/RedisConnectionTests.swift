import Redis
import TestSupport
import Testing

@Suite("Redis connection", .timeLimit(.minutes(5)))
struct RedisConnectionTests {
    private func connection(
        to url: String, timeout: Duration = .seconds(5), password: String? = nil
    ) throws -> RedisConnection {
        var configuration = try RedisConfiguration(url: url)
        configuration.commandTimeout = timeout
        if let password { configuration.password = password }
        return RedisConnection(configuration, name: "test connection")
    }

    @Test("Every type of reply arrives as its value")
    func replies() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url)
        #expect(try await redis.command(["PING"]) == .status("PONG"))
        #expect(try await redis.command(["GET", "nothing"]) == .null)
        #expect(try await redis.command(["RPUSH", "l", "a", 7]) == .integer(2))
        #expect(try await redis.command(["LRANGE", "l", 0, -1]) == .array([.bytes([97]), .bytes([55])]))
        let nested = try await redis.command(["EVAL", "return {1, {'x', false}, {err = 'ODD thing'}}", 0])
        #expect(nested == .array([.integer(1), .array([.bytes([120]), .null]), .error(RedisReplyError("ODD thing"))]))
        #expect(try await redis.command(["LRANGE", "none", 0, -1]) == .array([]))
        #expect(nested.array?[0].int == 1)
        #expect(try await redis.command(["INCRBY", "n", 41]).int == 41)
        #expect(try await redis.command(["GET", "n"]).int == 41)
    }

    @Test("Bytes of any value and length come back as they went")
    func binarySafety() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url)
        let all = (0...255).map { UInt8($0) }
        let injection = Array("\r\n*1\r\n$8\r\nFLUSHALL\r\n".utf8)
        let million = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for value in [[], all, injection, million] {
            try await redis.command(["SET", RedisArgument(all), RedisArgument(value)])
            #expect(try await redis.command(["GET", RedisArgument(all)]).bytes == value)
        }
        #expect(try await redis.command(["DBSIZE"]) == .integer(1))
    }

    @Test("A command that is longer than Redis takes is refused before anything of it is sent")
    func tooLong() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url)
        // One piece of memory, however often it is named.
        let piece = RedisArgument([UInt8](repeating: 7, count: 8 << 20))
        let error = await #expect(throws: RedisError.self) {
            try await redis.command(["RPUSH", "l"] + Array(repeating: piece, count: 64))
        }
        #expect(error?.code == .configuration && error?.outcomeUnknown == false)
        #expect(try await redis.command(["EXISTS", "l"]).int == 0)
        #expect(try await redis.command(["RPUSH", "l"] + Array(repeating: piece, count: 4)).int == 4)
    }

    @Test("The connection has a name, a database and the credentials of the configuration")
    func greeting() async throws {
        let server = try await RedisServer(options: ["--requirepass", "p@ss/ w:rd"])
        let redis = try connection(to: "\(server.url)?db=3", password: "p@ss/ w:rd")
        let line = try #require(try await redis.command(["CLIENT", "INFO"]).string)
        #expect(line.contains("name=test-connection") && line.contains(" db=3 "))
        try await redis.command(["ACL", "SETUSER", "ann", "on", ">secret", "~*", "+get", "+select", "+info"])
        let ann = try connection(to: "unix://ann:secret@\(server.socketPath)?db=3")
        #expect(try await ann.command(["GET", "x"]) == .null)
        let forbidden = await #expect(throws: RedisError.self) { try await ann.command(["SET", "x", "1"]) }
        #expect(forbidden?.code == .refused && forbidden?.replyCode == "NOPERM")
        #expect(await ann.isConnected)
    }

    @Test(
        "Wrong credentials are refused with a hint",
        arguments: [nil, "wrong", ""] as [String?])
    func wrongPassword(password: String?) async throws {
        let server = try await RedisServer(options: ["--requirepass", "right"])
        let error = await #expect(throws: RedisError.self) {
            try await connection(to: server.url, password: password).command(["GET", "x"])
        }
        #expect(error?.code == .refused)
        #expect(error?.isTransient == false)
        #expect(error?.hint?.contains("REDISCLI_AUTH") == true)
    }

    @Test("A password for a server that has none is refused")
    func unexpectedPassword() async throws {
        let server = try await RedisServer()
        let error = await #expect(throws: RedisError.self) {
            try await connection(to: server.url, password: "x").command(["PING"])
        }
        #expect(error?.code == .refused)
    }

    @Test("A database the server does not have is a configuration error")
    func wrongDatabase() async throws {
        let server = try await RedisServer()
        let error = await #expect(throws: RedisError.self) {
            try await connection(to: "\(server.url)?db=99").command(["PING"])
        }
        #expect(error?.code == .configuration)
        #expect(error?.message.contains("99") == true)
    }

    @Test("No server is unavailable and transient, with the address and without the password")
    func nobodyThere() async throws {
        for url in ["unix://:secret@/tmp/no-such.sock", "redis://:secret@127.0.0.1:1"] {
            let error = await #expect(throws: RedisError.self) { try await connection(to: url).command(["PING"]) }
            #expect(error?.code == .unavailable)
            #expect(error?.isTransient == true && error?.outcomeUnknown == false)
            #expect(error?.message.contains("secret") == false && error?.message.contains("***") == true)
        }
    }

    @Test("An error reply is thrown by a command and a value in a pipeline")
    func errorReplies() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url)
        let values = try await redis.pipeline([["SET", "s", "1"], ["LPUSH", "s", "1"], ["NOSUCH"], ["GET", "s"]])
        #expect(values[0] == .status("OK"))
        #expect(values[1].error?.code == "WRONGTYPE")
        #expect(values[2].error?.code == "ERR")
        #expect(values[3] == .bytes([49]))
        let error = await #expect(throws: RedisError.self) { try await redis.command(["LPUSH", "s", "1"]) }
        #expect(error?.code == .reply && error?.replyCode == "WRONGTYPE" && error?.isTransient == false)
    }

    @Test("A pipeline of 10,000 commands keeps order")
    func longPipeline() async throws {
        let server = try await RedisServer()
        let redis = try connection(to: server.url)
        let values = try await redis.pipeline((0..<10_000).map { ["ECHO", RedisArgument($0)] })
        #expect(values.map(\.int) == (0..<10_000).map { $0 })
        #expect(try await redis.pipeline([]) == [])
    }

    @Test("A full server says so with a code of its own")
    func outOfMemory() async throws {
        let server = try await RedisServer(options: ["--maxmemory", "100kb"])
        let redis = try connection(to: server.url)
        let error = await #expect(throws: RedisError.self) { try await redis.command(["SET", "x", "1"]) }
        #expect(error?.code == .outOfMemory && error?.isTransient == false)
    }

    @Test("What answers but is no Redis is told from one that broke off")
    func otherProtocol() async throws {
        let server = try await RedisServer()
        let proxy = FaultProxy(target: server.socketPath)
        let redis = try connection(to: proxy.url)
        proxy.arm(.garble)
        let first = await #expect(throws: RedisError.self) { try await redis.command(["PING"]) }
        #expect(first?.code == .protocolError && first?.isTransient == false && first?.hint != nil)
        #expect(try await redis.command(["PING"]) == .status("PONG"))
        proxy.arm(.garble)
        let later = await #expect(throws: RedisError.self) { try await redis.command(["PING"]) }
        #expect(later?.code == .protocolError && later?.isTransient == true && later?.outcomeUnknown == true)
        #expect(try await redis.command(["PING"]) == .status("PONG"))
    }

    @Test("A greeting that is cut off leaves nothing unknown")
    func cutGreeting() async throws {
        let server = try await RedisServer()
        let proxy = FaultProxy(target: server.socketPath)
        proxy.arm(.cutBeforeReply)
        let error = await #expect(throws: RedisError.self) { try await connection(to: proxy.url).command(["PING"]) }
        #expect(error?.code == .unavailable && error?.outcomeUnknown == false && error?.isTransient == true)
    }

    @Test("Connections close, and their threads end, with the last reference")
    func lifetime() async throws {
        let server = try await RedisServer()
        let monitor = try connection(to: server.url)
        for _ in 0..<20 { try await connection(to: server.url).command(["PING"]) }
        func clients() async throws -> Int {
            try await monitor.command(["CLIENT", "LIST"]).string?.split(separator: "\n").count ?? 0
        }
        try await until { try await clients() <= 1 }
        #expect(await monitor.isConnected)
        await monitor.close()
        #expect(await !monitor.isConnected)
        // The server hears of the closed socket a moment later.
        try await until { try await clients() <= 1 }
    }

    @Test(
        "A right that is missing is answered with the line that gives it",
        arguments: [
            (
                "NOPERM User weak has no permissions to run the 'evalsha' command",
                "redis-cli ACL SETUSER weak +@read +@write +@scripting +@connection +info +time"
            ),
            (
                "NOPERM this user has no permissions to run the 'script|load' command or its subcommand",
                "redis-cli ACL SETUSER NAME +@read +@write +@scripting +@connection +info +time"
            ),
            (
                "NOPERM User weak has no permissions to run the 'hget' command",
                "redis-cli ACL SETUSER weak +@read +@write +@scripting +@connection +info +time"
            ),
            (
                "NOPERM No permissions to access a key", "redis-cli ACL SETUSER NAME '~prefetch:*'"
            ),
            (
                "ERR unknown command 'EVALSHA', with args beginning with: 'x'",
                "redis-cli ACL SETUSER NAME +@read +@write +@scripting +@connection +info +time"
            ),
        ])
    func rights(text: String, line: String) {
        #expect(
            RedisReplyError(text).asError.hint?.hasSuffix(line) == true, "\(RedisReplyError(text).asError.hint ?? "")")
    }

    @Test(
        "Replies are classed by their first word",
        arguments: [
            ("NOAUTH Authentication required.", RedisError.Code.refused), ("WRONGPASS invalid", .refused),
            ("NOPERM this user has no permissions", .refused), ("LOADING Redis is loading", .transient),
            ("MASTERDOWN Link with MASTER is down", .transient), ("BUSY Redis is busy", .transient),
            ("CLUSTERDOWN Hash slot not served", .transient), ("TRYAGAIN Multiple keys", .transient),
            ("READONLY You can't write", .transient), ("MISCONF Redis is configured", .transient),
            ("OOM command not allowed", .outOfMemory), ("WRONGTYPE Operation", .reply), ("ERR syntax error", .reply),
            ("ERR max number of clients reached", .transient), ("MOVED 1 127.0.0.1:7001", .transient),
            ("ASK 1 127.0.0.1:7001", .transient),
            ("ERR unknown command 'EVALSHA', with args beginning with: 'x'", .refused),
            ("ERR unknown command `SCRIPT`, with args beginning with: `LOAD`", .refused),
            ("ERR unknown command 'GETEX', with args beginning with: 'x'", .reply),
            ("ERR ACL failure in script: User weak has no permissions to run the 'hset' command", .refused),
            ("BUSYKEY Target key name already exists.", .reply), ("", .reply),
        ])
    func classes(text: String, code: RedisError.Code) {
        #expect(RedisReplyError(text).asError.code == code)
        #expect(RedisReplyError(text).asError.isTransient == (code == .transient))
    }
}
