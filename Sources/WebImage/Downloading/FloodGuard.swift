internal import Threading

/// The calls of curl that one thread makes, for a ``FloodGuard`` on another.
final class CurlCalls: Sendable {
    private struct State {
        var count: UInt64 = 0
        var isRunning = false
        var isWatched = false
    }

    private let state = Locked(State())
    private let alarm = ThreadAlarm()

    /// Makes a call.
    func run(_ call: () -> Void) {
        let wasWatched = state.withLock { state in
            defer { state.isWatched = true }
            state.count += 1
            state.isRunning = true
            return state.isWatched
        }
        if !wasWatched { alarm.wake() }
        call()
        state.withLock { $0.isRunning = false }
    }

    func wake() { alarm.wake() }

    /// Sleeps until it is time to look at the calls again, or until ``wake()``.
    /// * `seen`: the number of calls at the last check.
    /// - Returns: their number now, and that of the running one.
    func sleep(seen: UInt64) -> (count: UInt64, running: UInt64?) {
        let isIdle = state.withLock { state in
            if state.count == seen && !state.isRunning { state.isWatched = false }
            return !state.isWatched
        }
        alarm.sleep(atMost: isIdle ? .seconds(86_400) : .milliseconds(500))
        return state.withLock { ($0.count, $0.isRunning ? $0.count : nil) }
    }
}

/// Shuts down the connection of a server that never lets curl return, from a thread of its own: ``FloodWatch`` says which. The thread sleeps while
/// none calls curl.
final class FloodGuard: Sendable {
    private struct State {
        var watch = FloodWatch()
        var seen: UInt64 = 0
        /// The watched thread's processor time; nil: it may have ended.
        var time: (@Sendable () -> Duration)?
    }

    private let executor: ThreadExecutor

    /// * `time`: processor time of the thread that makes the calls.
    init(_ calls: CurlCalls, of sockets: CurlSockets, time: @escaping @Sendable () -> Duration) {
        let state = Locked(State(time: time))
        self.state = state
        executor = ThreadExecutor(
            name: "flood guard", wake: { calls.wake() },
            turn: { maySleep in
                guard maySleep else { return }
                let (count, running) = calls.sleep(seen: state.withLock { $0.seen })
                let flooded = state.withLock { state -> UInt64? in
                    state.seen = count
                    guard let time = state.time?() else { return nil }
                    return state.watch.check(call: running, time: time) { sockets.taken() }
                }
                if let flooded { sockets.shutDown(flooded, now: MonotonicClock.now) }
            })
    }

    private let state: Locked<State>

    /// Ends the watch; the watched thread may end from now on.
    func stop() {
        state.withLock { $0.time = nil }
        executor.stop()
    }
}
