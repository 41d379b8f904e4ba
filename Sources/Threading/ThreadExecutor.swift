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
/// `@unchecked Sendable`: `state` is accessed only with `monitor` held; the closures and the thread identifier are constants.
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

    private var state = State()
    private var thread = pthread_t()
    private let monitor = Monitor()
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
        self.turn = turn
        self.wake = wake
        monitor.lock()
        thread = Threads.start(name) { self.run() }
        monitor.unlock()
    }

    package func enqueue(_ job: consuming ExecutorJob) { append(.job(UnownedJob(job))) }

    /// Runs a closure on the thread, in order with the jobs. `assumeIsolated` holds in it. Use it to reach the actor if the caller waits
    /// for a continuation anyway: it saves the two task switches of an `await`.
    package func perform(_ body: @escaping @Sendable () -> Void) { append(.call(body)) }

    private func append(_ work: Work) {
        monitor.lock()
        let first = state.jobs.isEmpty
        state.jobs.append(work)
        let polling = state.polling
        if first && wake == nil { monitor.signal() }
        monitor.unlock()
        if first && polling { wake?() }
    }

    package func stop() {
        monitor.lock()
        state.stopping = true
        monitor.signal()
        monitor.unlock()
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

    private func run() {
        // The starter fills `thread` in, and holds the monitor until then.
        monitor.lock()
        monitor.unlock()
        var batch: [Work] = []
        while true {
            monitor.lock()
            if turn == nil {
                while state.jobs.isEmpty && !state.stopping { monitor.wait() }
            }
            swap(&batch, &state.jobs)
            let stopping = state.stopping
            state.polling = false
            monitor.unlock()
            if batch.isEmpty && stopping { break }
            for work in batch {
                switch work {
                case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
                case .call(let body): body()
                }
            }
            batch.removeAll(keepingCapacity: true)
            guard let turn else { continue }
            monitor.lock()
            // Set before the poll begins: from now on, enqueueing calls `wake`.
            state.polling = true
            let maySleep = state.jobs.isEmpty && !state.stopping
            monitor.unlock()
            turn(maySleep)
        }
        turn = nil
    }
}
