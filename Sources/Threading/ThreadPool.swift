internal import CLinux
internal import Glibc

/// A task executor of a fixed number of threads that may block: file calls and image verification run here, so that nothing that
/// blocks ever sits on the cooperative pool.
///
/// Use it as a task's preference (`Task(executorPreference:)`, `group.addTask(executorPreference:)`) or hand it one closure with
/// ``run(_:)``. The threads end when the pool is released.
package final class ThreadPool: TaskExecutor {
    private let queue: WorkQueue

    /// - Parameters:
    ///   - threads: at least 1.
    ///   - name: what `top -H` shows, at most 15 bytes.
    package init(threads: Int, name: String) {
        queue = WorkQueue()
        for _ in 0..<max(1, threads) { queue.startThread(name: name) }
    }

    deinit { queue.stop() }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = asUnownedTaskExecutor()
        queue.append { job.runSynchronously(on: executor) }
    }

    /// Runs a blocking closure on one of the threads. Not cancellable once it runs; it does run, even in a cancelled task.
    package func run<Result: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withTaskExecutorPreference(self) { () async throws(Failure) in try body() }
    }
}

/// What the threads of a pool share; it outlives the pool until the last thread has left.
///
/// `@unchecked Sendable`: `items` and `stopping` are only touched with `mutex` held.
private final class WorkQueue: @unchecked Sendable {
    private var items: [@Sendable () -> Void] = []
    private var next = 0
    private var stopping = false
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    func append(_ item: @escaping @Sendable () -> Void) {
        pthread_mutex_lock(mutex)
        items.append(item)
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    func stop() {
        pthread_mutex_lock(mutex)
        stopping = true
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    func startThread(name: String) {
        var thread = pthread_t()
        let box = Unmanaged.passRetained(ThreadBody(queue: self, name: name))
        let status = pthread_create(
            &thread, nil,
            { argument in
                let body = Unmanaged<ThreadBody>.fromOpaque(argument!).takeRetainedValue()
                clinux_set_thread_name(body.name)
                while let item = body.queue.take() { item() }
                return nil
            }, box.toOpaque())
        precondition(status == 0, "cannot start a thread: \(String(cString: strerror(status)))")
        pthread_detach(thread)
    }

    private func take() -> (@Sendable () -> Void)? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while next == items.count && !stopping { pthread_cond_wait(condition, mutex) }
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
        return item
    }
}

private final class ThreadBody {
    let queue: WorkQueue
    let name: String

    init(queue: WorkQueue, name: String) {
        self.queue = queue
        self.name = name
    }
}
