import Redis
import Testing

@testable import Queue

@Suite("What is told of a Redis that fails")
struct RedisOutageTests {
    private let cut = RedisError(.unavailable, "connection closed")
    private let refused = RedisError(.refused, "Redis requires a password", replyCode: "NOAUTH")

    private let start = ContinuousClock.now

    @Test("A connection that is cut and there again is not told, an outage once, and its end")
    func lost() {
        var outage = RedisOutage()
        let soon = start + .milliseconds(299)
        let later = start + .milliseconds(300)
        #expect(outage.fails(cut, at: start) == nil && outage.fails(cut, at: soon) == nil && outage.answers() == nil)
        #expect(outage.fails(cut, at: start) == nil && outage.fails(cut, at: later) == .away("connection closed"))
        #expect(outage.fails(cut, at: later + .seconds(9)) == nil)
        guard case .back = outage.answers() else { Issue.record("no end"); return }
        #expect(outage.answers() == nil)
    }

    @Test("The reply that follows a lost connection is told as well")
    func reply() {
        var outage = RedisOutage()
        #expect(outage.fails(refused) == .away("Redis requires a password") && outage.fails(cut) == nil)
        _ = outage.answers()
        #expect(outage.fails(cut, at: start) == nil)
        #expect(outage.fails(cut, at: start + .seconds(1)) == .away("connection closed"))
        #expect(outage.fails(refused) == .away("Redis requires a password"))
        #expect(outage.fails(refused) == nil && outage.fails(cut) == nil)
    }
}
