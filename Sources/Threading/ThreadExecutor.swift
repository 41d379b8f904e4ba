internal import CLinux
internal import Glibc

/// A thread that runs the jobs of one actor and may block: the actor that owns a C handle which blocks, or a C event loop, names
/// it as its `unownedExecutor`, and the compiler then proves that only this thread touches the handle.
///
/// Between jobs the thread sleeps on a condition variable. A C event loop passes its own pair instead: `turn` performs the loop's
/// work and then sleeps in its poll, but only where its argument says that it may; `wake` interrupts that sleep from any thread
/// and must be remembered until the next poll where there is none (as `curl_multi_wakeup` is). `turn` runs after every batch of
/// jobs, on the thread and outside any job; `assumeIsolated` holds there (`isIsolatingCurrentContext`).
///
/// The thread ends after ``stop()``, once the jobs enqueued until then have run; jobs enqueued later run on no thread, so stop it
/// in the actor's `deinit`, or when nothing can call the actor any more.
///
/// `@unchecked Sendable`: `state` is only touched with `mutex` held; the closures and the thread identifier are constants.
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
    ///   - name: what `top -H` and a debugger show, at most 15 bytes.
    ///   - wake: interrupts `turn`'s poll; callable from any thread. Give both or neither.
    ///   - turn: performs the C loop's work and sleeps in its poll. Capture the actor weakly: the thread keeps the closure.
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

    /// Runs a closure on the thread, in the order of the jobs. `assumeIsolated` holds in it: the way to the actor for a caller that
    /// waits for a continuation anyway, and would only lose two switches of its task on a way by `await`.
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

    /// Ends the thread after the jobs that are enqueued now.
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

    /// Whether the caller runs on this executor's thread.
    package var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    private func run(name: String) {
        // pthread_create fills `thread` in; the starter holds the mutex until it has.
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
            // Set before the poll begins: from now on an enqueue calls `wake`.
            state.polling = true
            let maySleep = state.jobs.isEmpty && !state.stopping
            pthread_mutex_unlock(mutex)
            turn(maySleep)
        }
        turn = nil
    }
}
