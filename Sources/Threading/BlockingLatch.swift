/// A one-shot gate that blocks threads until it opens. Only for threads that may block, never for the cooperative pool.
///
/// `@unchecked Sendable`: all state is accessed only with `monitor` held.
package final class BlockingLatch: @unchecked Sendable {
    private var isOpen = false
    private let monitor = Monitor()

    package init() {}

    package func open() {
        monitor.lock()
        isOpen = true
        // Broadcast with the mutex held: a released waiter may free the latch immediately.
        monitor.broadcast()
        monitor.unlock()
    }

    package func wait() {
        monitor.lock()
        while !isOpen { monitor.wait() }
        monitor.unlock()
    }
}
