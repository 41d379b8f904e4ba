import Testing

@testable import WebImage

@Suite("RetryPolicy", .timeLimit(.minutes(5)))
struct RetryPolicyTests {
    private let policy = RetryPolicy(maxTries: 5, baseDelay: 0.5, maxDelay: 3, maxRetryAfter: 60)

    @Test(
        "Pauses double up to their limit and are a random part of that", arguments: [(1, 0.5), (2, 1), (3, 2), (4, 3)])
    func pauses(tries: Int, ceiling: Double) {
        let error = WebImageError(.timedOut, "", isTransient: true)
        #expect(policy.delay(afterTries: tries, error: error, random: 1) == ceiling)
        #expect(policy.delay(afterTries: tries, error: error, random: 0.25) == ceiling / 4)
    }

    @Test("Only transient failures, only as often as allowed")
    func ends() {
        #expect(
            policy.delay(afterTries: 5, error: WebImageError(.timedOut, "", isTransient: true), random: 1) == nil)
        #expect(policy.delay(afterTries: 1, error: WebImageError(.tooLarge, ""), random: 1) == nil)
    }

    @Test("Retry-After is the least and has a limit", arguments: [(2.0, 2.0), (0.1, 0.5), (3600, 60)])
    func retryAfter(seconds: Double, pause: Double) {
        var error = WebImageError(status: 503, retryAfter: seconds)
        #expect(policy.delay(afterTries: 1, error: error, random: 1) == pause)
        error = WebImageError(status: 404, retryAfter: seconds)
        #expect(error.retryAfter == nil)
    }
}
