import Glibc
import Testing
import Threading

@Suite("Locked values", .timeLimit(.minutes(5)))
struct LockedTests {
    @Test("No update is lost under contention")
    func contention() async {
        let counter = Locked(0)
        let pool = ThreadPool(threads: 4, name: "contention")
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask(executorPreference: pool) {
                    for _ in 0..<5000 { counter.withLock { $0 += 1 } }
                }
            }
        }
        #expect(counter.withLock { $0 } == 40_000)
    }

    @Test("A thrown error keeps its type and leaves the lock open")
    func errors() {
        struct Failure: Error, Equatable { var number: Int }
        let value = Locked(1)
        #expect(throws: Failure(number: 2)) {
            try value.withLock { value throws(Failure) in
                value = 3
                throw Failure(number: 2)
            }
        }
        #expect(value.withLock { $0 } == 3)
    }

    @Test("The value is released with its lock")
    func release() {
        final class Probe: Sendable {}
        weak var probe: Probe?
        do {
            let value = Probe()
            probe = value
            let locked = Locked(value)
            #expect(locked.withLock { $0 === value })
        }
        #expect(probe == nil)
    }
}
