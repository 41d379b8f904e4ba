import Redis
import Testing

@testable import Queue

@Suite("What is told of a Redis that fails")
struct RedisOutageTests {
    private let cut = RedisError(.unavailable, "connection closed")
    private let refused = RedisError(.refused, "Redis requires a password", replyCode: "NOAUTH")

    @Test("A connection that is cut once is not told, an outage once, and its end")
    func lost() {
        var outage = RedisOutage()
        #expect(outage.fails(cut) == nil && outage.answers() == nil)
        #expect(outage.fails(cut) == nil && outage.fails(cut) == .away("connection closed") && outage.fails(cut) == nil)
        guard case .back = outage.answers() else { Issue.record("no end"); return }
        #expect(outage.answers() == nil)
    }

    @Test("The reply that follows a lost connection is told as well")
    func reply() {
        var outage = RedisOutage()
        #expect(outage.fails(refused) == .away("Redis requires a password") && outage.fails(cut) == nil)
        _ = outage.answers()
        #expect(outage.fails(cut) == nil && outage.fails(cut) == .away("connection closed"))
        #expect(outage.fails(refused) == .away("Redis requires a password"))
        #expect(outage.fails(refused) == nil && outage.fails(cut) == nil)
    }
}
