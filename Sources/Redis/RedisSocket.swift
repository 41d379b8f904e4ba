internal import Glibc
internal import Threading

/// The state of a blocking connection that other threads may access: its descriptor, to shut it down, and the number of interrupts.
final class RedisSocket: Sendable {
    private struct State {
        var descriptor: Int32 = -1
        var interrupts = 0
    }

    private let state = Locked(State())

    /// Incremented by every interrupt: a call that sees a different number than at its start has been interrupted.
    var interrupts: Int { state.withLock { $0.interrupts } }

    func opened(_ descriptor: Int32) {
        state.withLock { $0.descriptor = descriptor }
    }

    func closed() {
        state.withLock { $0.descriptor = -1 }
    }

    /// Makes a blocked read return end of file immediately (shutdown(2)); the descriptor stays open, so its number is not reused.
    func interrupt() {
        state.withLock {
            $0.interrupts += 1
            if $0.descriptor >= 0 { shutdown($0.descriptor, Int32(SHUT_RDWR)) }
        }
    }
}
