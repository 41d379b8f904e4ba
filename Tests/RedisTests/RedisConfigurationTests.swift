import Redis
import Testing

@Suite("Redis addresses", .timeLimit(.minutes(5)))
struct RedisConfigurationTests {
    struct Good: Sendable, CustomTestStringConvertible {
        var url: String
        var expected: RedisConfiguration
        var redacted: String
        var testDescription: String { url }

        init(
            _ url: String, _ endpoint: RedisConfiguration.Endpoint, user: String? = nil, password: String? = nil,
            db: Int = 0, shown redacted: String
        ) {
            self.url = url
            expected = RedisConfiguration(endpoint: endpoint, username: user, password: password, database: db)
            self.redacted = redacted
        }
    }

    @Test(
        "Good addresses are understood and shown without their password",
        arguments: [
            Good("redis://", .tcp(host: "127.0.0.1", port: 6379), shown: "redis://127.0.0.1:6379"),
            Good("redis://cache", .tcp(host: "cache", port: 6379), shown: "redis://cache:6379"),
            Good("redis://cache:7000/2", .tcp(host: "cache", port: 7000), db: 2, shown: "redis://cache:7000/2"),
            Good("redis://cache/", .tcp(host: "cache", port: 6379), shown: "redis://cache:6379"),
            Good("valkey://cache?db=4", .tcp(host: "cache", port: 6379), db: 4, shown: "redis://cache:6379/4"),
            Good(
                "redis://:p%40ss@cache", .tcp(host: "cache", port: 6379), password: "p@ss",
                shown: "redis://:***@cache:6379"),
            Good(
                "REDIS://ann:s%2Fe%3Ac@h:1/0", .tcp(host: "h", port: 1), user: "ann", password: "s/e:c",
                shown: "redis://ann:***@h:1"),
            Good("redis://ann@h", .tcp(host: "h", port: 6379), user: "ann", shown: "redis://ann@h:6379"),
            Good(
                "redis://a:b@c@h", .tcp(host: "h", port: 6379), user: "a", password: "b@c",
                shown: "redis://a:***@h:6379"),
            Good("redis://[::1]:6380/1", .tcp(host: "::1", port: 6380), db: 1, shown: "redis://[::1]:6380/1"),
            Good(
                "redis://h?user=ann&password=s%26t", .tcp(host: "h", port: 6379), user: "ann", password: "s&t",
                shown: "redis://ann:***@h:6379"),
            Good("unix:///run/redis.sock", .unix(path: "/run/redis.sock"), shown: "unix:///run/redis.sock"),
            Good(
                "unix:///run/redis.sock?db=1", .unix(path: "/run/redis.sock"), db: 1,
                shown: "unix:///run/redis.sock?db=1"),
            Good("redis+socket:///tmp/a%20b?db=5", .unix(path: "/tmp/a b"), db: 5, shown: "unix:///tmp/a%20b?db=5"),
            Good("redis-socket:///s?database=2", .unix(path: "/s"), db: 2, shown: "unix:///s?db=2"),
            Good("unix://ann:pw@/s", .unix(path: "/s"), user: "ann", password: "pw", shown: "unix://ann:***@/s"),
        ])
    func good(_ good: Good) throws {
        let configuration = try RedisConfiguration(url: good.url)
        #expect(configuration == good.expected)
        #expect(configuration.redactedURL == good.redacted)
        #expect("\(configuration)" == good.redacted && String(reflecting: configuration) == good.redacted)
        var again = try RedisConfiguration(url: good.redacted)
        again.password = configuration.password
        #expect(again == configuration)
    }

    @Test(
        "Bad addresses are configuration errors that keep the password to themselves",
        arguments: [
            "", "cache:6379", "://h", "http://cache", "redis://h:0", "redis://h:99999", "redis://h:six", "redis://h:",
            "redis://h/one",
            "redis://h/-1", "redis://h/1?db=2", "redis://h?color=red", "redis://h?db", "redis://:geheim%4@h",
            "redis://:geheim%00@h",
            "redis://[::1", "redis://[::1]x", "redis://[]", "redis://h/1/2", "unix://", "unix:///",
            "unix://run/redis.sock",
            "unix:///" + String(repeating: "x", count: 107), "redis://a b",
        ])
    func bad(_ url: String) {
        let error = #expect(throws: RedisError.self) { try RedisConfiguration(url: url) }
        #expect(error?.code == .configuration && error?.isTransient == false)
        #expect(error?.message.contains("geheim") == false)
        #expect(error?.message.hasPrefix("the Redis address ") == true)
    }

    @Test(
        "Where this build has no TLS it is refused with a way out, never downgraded",
        .disabled(if: RedisTLS.isBuiltIn, "this build has TLS"), arguments: ["rediss://h", "valkeys://:pw@h:6380/1"])
    func noTLS(_ url: String) {
        let error = #expect(throws: RedisError.self) { try RedisConfiguration(url: url) }
        #expect(error?.code == .configuration)
        #expect(error?.hint?.contains("stunnel") == true && error?.hint?.contains("Unix socket") == true)
    }

    @Test("The parameters of TLS belong to an address with TLS", arguments: ["cacert", "cert", "key", "sni"])
    func strayTLS(_ name: String) {
        let error = #expect(throws: RedisError.self) { try RedisConfiguration(url: "redis://h?\(name)=x") }
        #expect(error?.code == .configuration && error?.hint?.contains("rediss://") == true)
    }
}
