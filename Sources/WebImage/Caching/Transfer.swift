internal import Threading

/// The right to transfer one image; given back with ``release()``, at the latest when the last reference goes.
package final class Transfer: Sendable {
    private let giveBack: @Sendable () -> Void
    private let isOver = Locked(false)

    init(giveBack: @escaping @Sendable () -> Void) { self.giveBack = giveBack }

    deinit { release() }

    /// Lets the next one transfer the image. Any further call does nothing.
    package func release() {
        let isFirst = isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
        if isFirst { giveBack() }
    }
}
