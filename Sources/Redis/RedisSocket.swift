internal import Glibc
internal import Threading

/// What other threads may know of a connection that blocks: the descriptor, to shut it down, and how often that was asked for.
final class RedisSocket: Sendable {
    private struct State {
        var descriptor: Int32 = -1
        var interrupts = 0
    }

    private let state = Locked(State())

    /// Changes with every interrupt: a call that sees another number than when it was made has been ended.
    var interrupts: Int { state.withLock { $0.interrupts } }

    func opened(_ descriptor: Int32) {
        state.withLock { $0.descriptor = descriptor }
    }

    func closed() {
        state.withLock { $0.descriptor = -1 }
    }

    /// A blocked read returns at once with end of file (shutdown(2)); the descriptor stays open and its number taken.
    func interrupt() {
        state.withLock {
            $0.interrupts += 1
            if $0.descriptor >= 0 { shutdown($0.descriptor, Int32(SHUT_RDWR)) }
        }
    }
}
