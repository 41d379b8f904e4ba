import Redis
import TestSupport
import Testing

@Suite("Redis connection", .timeLimit(.minutes(1)))
struct RedisConnectionTests {
    @Test("PING over a private server")
    func ping() async throws {
        let server = try await RedisServer()
        let redis = RedisConnection(try RedisConfiguration(url: server.url), name: "test")
        #expect(try await redis.command(["PING"]) == .status("PONG"))
    }
}
