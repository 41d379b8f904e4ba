import Glibc
import Testing
import Threading

@Suite("A pool of threads", .timeLimit(.minutes(5)))
struct ThreadPoolTests {
    @Test("As many closures block at once as there are threads")
    func width() async {
        let pool = ThreadPool(threads: 3, name: "p-width")
        let inside = Locked(0)
        // Each closure waits until all three are inside: with fewer threads this would never end.
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    await pool.run {
                        inside.withLock { $0 += 1 }
                        while inside.withLock({ $0 }) < 3 { sched_yield() }
                    }
                }
            }
        }
        #expect(inside.withLock { $0 } == 3)
    }

    @Test("One thread runs closures in their order")
    func order() async {
        let pool = ThreadPool(threads: 1, name: "p-order")
        let order = Locked<[Int]>([])
        for index in 0..<3000 { await pool.run { order.withLock { $0.append(index) } } }
        #expect(order.withLock { $0 } == Array(0..<3000))
    }

    @Test("Values and typed errors come back")
    func results() async throws {
        struct Failure: Error, Equatable {}
        let pool = ThreadPool(threads: 2, name: "p-results")
        #expect(await pool.run { 42 } == 42)
        await #expect(throws: Failure()) { try await pool.run { () throws(Failure) -> Int in throw Failure() } }
    }

    @Test("A task with the pool as its preference stays off the cooperative threads")
    func preference() async {
        let pool = ThreadPool(threads: 1, name: "p-pref")
        let own = await pool.run { pthread_self() }
        let threads = await Task(executorPreference: pool) {
            var threads: Set<pthread_t> = [currentThread()]
            await Task.yield()
            threads.insert(currentThread())
            return threads
        }.value
        #expect(threads == [own])
    }

    @Test("A closure runs in a cancelled task too")
    func cancelled() async {
        let pool = ThreadPool(threads: 1, name: "p-cancel")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await pool.run { 1 }
        }
        #expect(await task.value == 1)
    }

    @Test("A burst longer than the queue's window runs completely")
    func burst() async {
        let pool = ThreadPool(threads: 2, name: "p-burst")
        let count = Locked(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<5000 { group.addTask { await pool.run { count.withLock { $0 += 1 } } } }
        }
        #expect(count.withLock { $0 } == 5000)
    }
}

/// pthread_self is not to be called from an async function itself: it may go on on another thread.
private func currentThread() -> pthread_t { pthread_self() }
