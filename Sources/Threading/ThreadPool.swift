internal import Glibc

/// A task executor of threads that may block: file calls and image verification run here, so that nothing blocks the cooperative pool. Use
/// it as a task's executor preference (`Task(executorPreference:)`, `group.addTask(executorPreference:)`) or pass one closure to
/// ``run(_:)``. The threads end when the pool is released.
package final class ThreadPool: TaskExecutor {
    private let queue: WorkQueue

    /// - Parameters:
    ///   - threads: at least 1.
    ///   - name: shown by `top -H`, at most 15 bytes.
    package init(threads: Int, name: String) {
        queue = WorkQueue()
        for _ in 0..<max(1, threads) { queue.startThread(name: name) }
    }

    deinit { queue.stop() }

    /// Number of its threads.
    package var count: Int { queue.threadCount }

    /// Processor time of all its threads so far.
    package var processorTime: Duration { queue.processorTime }

    package func enqueue(_ job: consuming ExecutorJob) {
        queue.append(UnownedJob(job), on: asUnownedTaskExecutor())
    }

    /// Runs a blocking closure on one of the threads, even if the task is cancelled. Not cancellable once it runs.
    package func run<Result: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withTaskExecutorPreference(self) { () async throws(Failure) in try body() }
    }
}

/// State shared by the threads of a pool; outlives the pool until the last thread exits.
///
/// `@unchecked Sendable`: all state is accessed only with `monitor` held.
private final class WorkQueue: @unchecked Sendable {
    private struct Item {
        let job: UnownedJob
        let executor: UnownedTaskExecutor
    }

    private var items: [Item] = []
    private var next = 0
    private var stopping = false
    /// They end after the pool, which is what asks for their time.
    private var threads: [pthread_t] = []
    private var sleeping = 0
    /// Whether a sleeping thread was woken and has not run yet: it wakes the next one if there is more to do, so a burst costs one wake-up.
    private var isWaking = false
    private let monitor = Monitor()

    func append(_ job: UnownedJob, on executor: UnownedTaskExecutor) {
        monitor.lock()
        items.append(Item(job: job, executor: executor))
        let wakes = shouldWake()
        monitor.unlock()
        // After the unlock: a thread woken with the mutex held would sleep again on it.
        if wakes { monitor.signal() }
    }

    /// Call with `monitor` held, and signal if it returns true.
    private func shouldWake() -> Bool {
        guard sleeping > 0, !isWaking else { return false }
        isWaking = true
        return true
    }

    var threadCount: Int {
        monitor.lock()
        defer { monitor.unlock() }
        return threads.count
    }

    var processorTime: Duration {
        monitor.lock()
        let threads = threads
        monitor.unlock()
        return threads.reduce(.zero) { $0 + ThreadTime.of($1) }
    }

    func stop() {
        monitor.lock()
        stopping = true
        monitor.broadcast()
        monitor.unlock()
    }

    func startThread(name: String) {
        let thread = Threads.start(name) { while self.runNext() {} }
        monitor.lock()
        threads.append(thread)
        monitor.unlock()
    }

    private func runNext() -> Bool {
        guard let item = take() else { return false }
        item.job.runSynchronously(on: item.executor)
        return true
    }

    private func take() -> Item? {
        monitor.lock()
        var wakes = false
        defer {
            monitor.unlock()
            if wakes { monitor.signal() }
        }
        var yields = 0
        while next == items.count && !stopping && yields < 4 {
            // Sleeping and waking cost more than a yield, and on a busy machine the next job is usually there after it.
            yields += 1
            monitor.unlock()
            sched_yield()
            monitor.lock()
        }
        while next == items.count && !stopping {
            sleeping += 1
            monitor.wait()
            sleeping -= 1
            isWaking = false
        }
        guard next < items.count else { return nil }
        let item = items[next]
        next += 1
        if next == items.count {
            items.removeAll(keepingCapacity: true)
            next = 0
        } else if next > 1024 {
            items.removeFirst(next)
            next = 0
        }
        wakes = next < items.count && shouldWake()
        return item
    }
}
