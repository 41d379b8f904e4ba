package import Threading

/// What signals asked of a command.
package final class StopRequest: Sendable {
    package init() {}

    /// Opens with the first SIGINT or SIGTERM.
    package let first = Latch()
    /// Opens with the second.
    let second = Latch()
    private let signal = Locked<Int32?>(nil)

    /// The signal that forced the end, where a second one came.
    var forced: Int32? { signal.withLock { $0 } }

    /// Notes a signal.
    package func request(signal number: Int32, count: Int) {
        if count >= 2 {
            signal.withLock { $0 = number }
            second.open()
        }
        first.open()
    }
}
