import Redis
import TestSupport
import Testing

@Suite(
    "Redis over TLS", .timeLimit(.minutes(5)),
    .enabled(
        if: RedisTLS.isBuiltIn,
        "NOT TESTED HERE: hiredis of this system has no TLS (libhiredis_ssl comes with 1.0 and newer)"))
struct RedisTLSTests {
    private func connection(_ url: String) throws -> RedisConnection {
        var configuration = try RedisConfiguration(url: url)
        configuration.commandTimeout = .milliseconds(700)
        return RedisConnection(configuration, name: "tls", following: "prefetch:{default}")
    }

    @Test(
        "With the authority, the client's certificate and any name the certificate has, everything works as without TLS"
    )
    func works() async throws {
        let certificates = try await RedisCertificates()
        let (server, port) = try await certificates.server(["--tls-auth-clients", "yes", "--requirepass", "pass word"])
        let files =
            "cacert=\(certificates.path("ca.pem"))&cert=\(certificates.path("client.pem"))&key=\(certificates.path("client.key"))"
        for address in ["127.0.0.1:\(port)/2?", "localhost:\(port)?", "127.0.0.1:\(port)?sni=redis.test&"] {
            let redis = try connection("rediss://:pass%20word@\(address)\(files)")
            #expect(try await redis.command(["PING"]) == .status("PONG"))
            let million = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try await redis.command(["SET", "k", RedisArgument(million)])
            #expect(try await redis.command(["GET", "k"]).bytes == million)
            let task = Task { try await redis.blocking(["BLPOP", "never", 30], timeout: .seconds(30)) }
            try await until { try await blocked(server) }
            redis.interrupt()
            let ended = await #expect(throws: RedisError.self) { try await task.value }
            #expect(ended?.code == .interrupted)
            let late = await #expect(throws: RedisError.self) {
                try await redis.blocking(["BLPOP", "never", 30], timeout: .milliseconds(50))
            }
            #expect(late?.code == .timedOut && late?.outcomeUnknown == true)
            #expect(try await redis.command(["GET", "k"]).bytes?.count == million.count)
        }
        _ = server
    }

    private func blocked(_ server: RedisServer) async throws -> Bool {
        let monitor = RedisConnection(
            RedisConfiguration(endpoint: .unix(path: server.socketPath), password: "pass word"), name: "monitor")
        return try await (monitor.command(["INFO", "clients"]).string ?? "").contains("blocked_clients:1")
    }

    @Test("A certificate of another authority or for another name is refused, and so is clear text")
    func refuses() async throws {
        let certificates = try await RedisCertificates()
        let (server, port) = try await certificates.server(["--tls-auth-clients", "no"])
        for address in [
            "127.0.0.1:\(port)?cacert=\(certificates.path("other.pem"))", "127.0.0.1:\(port)",
            "127.0.0.1:\(port)?cacert=\(certificates.path("ca.pem"))&sni=elsewhere.test",
        ] {
            let error = await #expect(throws: RedisError.self) {
                try await connection("rediss://\(address)").command(["PING"])
            }
            #expect(
                error?.code == .configuration && error?.message.contains("not trusted") == true,
                "\(address) \(error as Any)")
        }
        let missing = await #expect(throws: RedisError.self) {
            try await connection("rediss://127.0.0.1:\(port)?cacert=/nowhere.pem").command(["PING"])
        }
        #expect(missing?.code == .configuration && missing?.message.contains("/nowhere.pem") == true)
        let clear = await #expect(throws: RedisError.self) {
            try await connection("redis://127.0.0.1:\(port)").command(["PING"])
        }
        #expect(clear != nil)
        let half = #expect(throws: RedisError.self) { try RedisConfiguration(url: "rediss://h?cert=/c.pem") }
        #expect(half?.code == .configuration)
        _ = server
    }

    @Test("A server that wants a client's certificate refuses whoever has none")
    func wantsCertificate() async throws {
        let certificates = try await RedisCertificates()
        let (server, port) = try await certificates.server(["--tls-auth-clients", "yes"])
        let error = await #expect(throws: RedisError.self) {
            try await connection("rediss://127.0.0.1:\(port)?cacert=\(certificates.path("ca.pem"))").command(["PING"])
        }
        #expect(error?.code == .unavailable)
        _ = server
    }

    @Test("A Redis Cluster over TLS is followed over TLS")
    func cluster() async throws {
        let certificates = try await RedisCertificates()
        var servers: [(RedisServer, port: Int)] = []
        for _ in 0..<2 {
            servers.append(
                try await certificates.server([
                    "--tls-auth-clients", "no", "--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-port",
                    "\(freePort())", "--cluster-config-file", "nodes.conf",
                ]))
        }
        let controls = try servers.map { RedisConnection(try RedisConfiguration(url: $0.0.url), name: "control") }
        try await controls[0].command(["CLUSTER", "ADDSLOTSRANGE", 0, 8191])
        try await controls[1].command(["CLUSTER", "ADDSLOTSRANGE", 8192, 16383])
        let bus = try await controls[1].command(["CONFIG", "GET", "cluster-port"]).array?.last?.string ?? ""
        try await controls[0].command([
            "CLUSTER", "MEET", "127.0.0.1", RedisArgument(servers[1].port), RedisArgument(bus),
        ])
        for control in controls {
            try await until {
                try await (control.command(["CLUSTER", "INFO"]).string ?? "").contains("cluster_state:ok")
            }
        }
        for index in 0..<8 {
            let key = "prefetch:{q\(index)}"
            let url = "rediss://127.0.0.1:\(servers[index % 2].port)?cacert=\(certificates.path("ca.pem"))"
            let redis = RedisConnection(try RedisConfiguration(url: url), name: "tls", following: key)
            #expect(try await redis.command(["SET", RedisArgument(key), "1"]) == .status("OK"))
        }
    }

    @Test("The address in its shown form has its files and leads to the same place")
    func shown() throws {
        let url = "rediss://ann:pw@h:6380/1?cacert=/a%20b.pem&cert=/c.pem&key=/k.pem&sni=name"
        let configuration = try RedisConfiguration(url: url)
        #expect(
            configuration.redactedURL == "rediss://ann:***@h:6380/1?cacert=/a%20b.pem&cert=/c.pem&key=/k.pem&sni=name")
        #expect(configuration.tls?.caFile == "/a b.pem")
        #expect(try RedisConfiguration(url: "valkeys://h").redactedURL == "rediss://h:6379")
    }
}
