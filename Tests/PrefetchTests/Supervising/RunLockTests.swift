import Prefetch
import TestSupport
import Testing

@Suite("Run lock", .timeLimit(.minutes(5)))
struct RunLockTests {
    @Test("The first run is alone, a second is not, and after both the next is again")
    func alone() async throws {
        let directory = TemporaryDirectory()
        let state = try RunState.open(directory.path("cache"), in: StateFolder(path: directory.path("state")))
        do {
            let first = try await RunLock.acquire(state)
            #expect(first.isAlone)
            first.share()
            let second = try await RunLock.acquire(state)
            #expect(!second.isAlone)
            second.share()
            withExtendedLifetime(first) {}
        }
        #expect(try await RunLock.acquire(state).isAlone)
    }

    @Test("A second run waits until the first has reaped, and of many at once exactly one is alone")
    func gate() async throws {
        let directory = TemporaryDirectory()
        let state = try RunState.open(directory.path("cache"), in: StateFolder(path: directory.path("state")))
        let first = try await RunLock.acquire(state)
        let others = (0..<5).map { _ in Task { try await RunLock.acquire(state) } }
        // Behind the gate a cancelled one gives up; the rest get in once it opens.
        others[0].cancel()
        await #expect(throws: PrefetchError.self) { try await others[0].value }
        first.share()
        for other in others.dropFirst() { #expect(try await !other.value.isAlone) }
        withExtendedLifetime(first) {}
    }
}
