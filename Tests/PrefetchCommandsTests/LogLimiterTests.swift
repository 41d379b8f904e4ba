import Testing

@testable import PrefetchCommands

@Suite("Lines of a log that repeat", .timeLimit(.minutes(5)))
struct LogLimiterTests {
    @Test("Ten of a kind a second are said, and the next one says how many were not")
    func limit() {
        var limiter = LogLimiter()
        let first = (0..<25).map { _ in limiter.admit("a", second: 7) }
        #expect(first == Array(repeating: 0, count: 10) + Array(repeating: nil, count: 15))
        #expect(limiter.admit("b", second: 7) == 0)
        #expect(limiter.admit("a", second: 8) == 15)
        #expect(limiter.admit("a", second: 8) == 0)
    }

    @Test("What nobody has said by the end is told then, once")
    func rest() {
        var limiter = LogLimiter()
        for _ in 0..<12 { _ = limiter.admit("b", second: 1) }
        for _ in 0..<13 { _ = limiter.admit("a", second: 1) }
        _ = limiter.admit("c", second: 1)
        #expect(limiter.rest().map { "\($0.kind) \($0.leftOut)" } == ["a 3", "b 2"])
        #expect(limiter.rest().isEmpty)
    }
}
