import Prefetch
import TestSupport
import Testing

@Suite("Run lock", .timeLimit(.minutes(5)))
struct RunLockTests {
    @Test("The first run is alone, a second is not, and after both the next is again")
    func alone() async throws {
        let directory = TemporaryDirectory()
        do {
            let first = try await RunLock.acquire(cache: directory.path)
            #expect(first.isAlone)
            first.share()
            let second = try await RunLock.acquire(cache: directory.path)
            #expect(!second.isAlone)
            second.share()
            withExtendedLifetime(first) {}
        }
        #expect(try await RunLock.acquire(cache: directory.path).isAlone)
    }

    @Test("A second run waits until the first has reaped, and of many at once exactly one is alone")
    func gate() async throws {
        let directory = TemporaryDirectory()
        let path = directory.path
        let first = try await RunLock.acquire(cache: path)
        let others = (0..<5).map { _ in Task { try await RunLock.acquire(cache: path) } }
        // Behind the gate a cancelled one gives up; the rest get in once it opens.
        others[0].cancel()
        await #expect(throws: PrefetchError.self) { try await others[0].value }
        first.share()
        for other in others.dropFirst() { #expect(try await !other.value.isAlone) }
        withExtendedLifetime(first) {}
    }
}
