/// An actor on a thread that waits in an ``Epoll``.
package protocol EpollLoop: Actor {
    /// When a turn is due without an event, in seconds of ``MonotonicClock``; infinity: never.
    var nextTurn: Double { get }

    /// Handles the events of the last wait, and what is due.
    func turn(events count: Int)
}

extension ThreadExecutor {
    /// Starts the thread of an ``EpollLoop``.
    package convenience init(name: String, epoll: Epoll, loop: WeakReference<some EpollLoop>) {
        self.init(
            name: name, wake: { epoll.wake() },
            turn: { maySleep in
                // No strong reference while asleep: a released loop must be able to end.
                let next = maySleep ? loop.object?.assumeIsolated { $0.nextTurn } ?? .infinity : 0
                let milliseconds = min(60_000, max(0, ((next - MonotonicClock.now) * 1000).rounded(.up)))
                let count = epoll.wait(milliseconds: next == .infinity ? -1 : Int32(milliseconds))
                loop.object?.assumeIsolated { $0.turn(events: count) }
            })
    }
}
