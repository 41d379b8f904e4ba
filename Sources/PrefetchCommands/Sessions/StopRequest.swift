package import Threading

/// Signals received by a command.
package final class StopRequest: Sendable {
    package init() {}

    package let first = Latch()
    let second = Latch()
    private let signal = Locked<Int32?>(nil)

    /// The second signal, if any.
    var forced: Int32? { signal.withLock { $0 } }

    package func request(signal number: Int32, count: Int) {
        if count >= 2 {
            signal.withLock { $0 = number }
            second.open()
        }
        first.open()
    }
}
