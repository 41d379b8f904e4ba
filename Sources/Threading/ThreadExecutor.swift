internal import CLinux
internal import Glibc

/// A thread that runs the jobs of one actor and may block. An actor that owns a blocking C handle or a C event loop names it as its
/// `unownedExecutor`; the compiler then proves that only this thread touches the handle.
///
/// Between jobs the thread sleeps on a condition variable. A C event loop passes its own pair instead: `turn` runs the loop and polls,
/// sleeping only if its argument allows it; `wake` interrupts the poll from any thread and must be remembered until the next one (like
/// `curl_multi_wakeup`). `turn` runs after every batch of jobs, on the thread and outside any job; `assumeIsolated` holds there
/// (`isIsolatingCurrentContext`).
///
/// The thread ends after ``stop()``, once the jobs enqueued before it have run. Later jobs never run, so stop it in the actor's `deinit`,
/// or when the actor can no longer be called.
///
/// `@unchecked Sendable`: `state` is accessed only with `mutex` held; the closures and the thread identifier are constants.
package final class ThreadExecutor: SerialExecutor, @unchecked Sendable {
    private enum Work {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    private struct State {
        var jobs: [Work] = []
        var stopping = false
        var polling = false
    }

    private final class Box {
        let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
    }

    private var state = State()
    private var thread = pthread_t()
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var turn: (@Sendable (_ maySleep: Bool) -> Void)?
    private let wake: (@Sendable () -> Void)?

    /// Starts the thread.
    /// - Parameters:
    ///   - name: shown by `top -H` and debuggers, at most 15 bytes.
    ///   - wake: interrupts `turn`'s poll; callable from any thread. Give both or neither.
    ///   - turn: runs the C loop and sleeps in its poll. Capture the actor weakly: the thread keeps the closure.
    package init(
        name: String, wake: (@Sendable () -> Void)? = nil, turn: (@Sendable (_ maySleep: Bool) -> Void)? = nil
    ) {
        precondition((wake == nil) == (turn == nil), "a loop needs both its poll and the call that interrupts it")
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        pthread_cond_init(condition, nil)
        self.turn = turn
        self.wake = wake
        let box = Unmanaged.passRetained(Box { self.run(name: name) })
        pthread_mutex_lock(mutex)
        let status = pthread_create(
            &thread, nil,
            { argument in
                Unmanaged<Box>.fromOpaque(argument!).takeRetainedValue().body()
                return nil
            }, box.toOpaque())
        precondition(status == 0, "cannot start a thread: \(String(cString: strerror(status)))")
        pthread_detach(thread)
        pthread_mutex_unlock(mutex)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    package func enqueue(_ job: consuming ExecutorJob) { append(.job(UnownedJob(job))) }

    /// Runs a closure on the thread, in order with the jobs. `assumeIsolated` holds in it. Use it to reach the actor if the caller waits
    /// for a continuation anyway: it saves the two task switches of an `await`.
    package func perform(_ body: @escaping @Sendable () -> Void) { append(.call(body)) }

    private func append(_ work: Work) {
        pthread_mutex_lock(mutex)
        let first = state.jobs.isEmpty
        state.jobs.append(work)
        let polling = state.polling
        if first && wake == nil { pthread_cond_signal(condition) }
        pthread_mutex_unlock(mutex)
        if first && polling { wake?() }
    }

    package func stop() {
        pthread_mutex_lock(mutex)
        state.stopping = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
        wake?()
    }

    package func isSameExclusiveExecutionContext(other: ThreadExecutor) -> Bool { self === other }

    package func checkIsolated() {
        precondition(isCurrent, "not on the thread of this executor")
    }

    package func isIsolatingCurrentContext() -> Bool? { isCurrent }

    package var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    /// Processor time of the thread so far. Not after ``stop()``.
    package var processorTime: Duration { ThreadTime.of(thread) }

    private func run(name: String) {
        // pthread_create fills `thread` in; the starter holds the mutex until then.
        pthread_mutex_lock(mutex)
        pthread_mutex_unlock(mutex)
        clinux_set_thread_name(name)
        var batch: [Work] = []
        while true {
            pthread_mutex_lock(mutex)
            if turn == nil {
                while state.jobs.isEmpty && !state.stopping { pthread_cond_wait(condition, mutex) }
            }
            swap(&batch, &state.jobs)
            let stopping = state.stopping
            state.polling = false
            pthread_mutex_unlock(mutex)
            if batch.isEmpty && stopping { break }
            for work in batch {
                switch work {
                case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
                case .call(let body): body()
                }
            }
            batch.removeAll(keepingCapacity: true)
            guard let turn else { continue }
            pthread_mutex_lock(mutex)
            // Set before the poll begins: from now on, enqueueing calls `wake`.
            state.polling = true
            let maySleep = state.jobs.isEmpty && !state.stopping
            pthread_mutex_unlock(mutex)
            turn(maySleep)
        }
        turn = nil
    }
}
