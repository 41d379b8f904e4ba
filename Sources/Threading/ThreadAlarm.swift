internal import Glibc

/// An interruptible sleep for a thread; needs no descriptor.
///
/// `@unchecked Sendable`: `isSignalled` is accessed only with `monitor` held.
package final class ThreadAlarm: @unchecked Sendable {
    private var isSignalled = false
    private let monitor = Monitor()

    package init() {}

    /// Ends the sleep, from any thread; remembered if the thread is not sleeping.
    package func wake() {
        monitor.lock()
        isSignalled = true
        monitor.signal()
        monitor.unlock()
    }

    /// Sleeps until ``wake()`` or for `duration`. One thread at a time.
    package func sleep(atMost duration: Duration) {
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        let (seconds, attoseconds) = max(.zero, duration).components
        let nanoseconds = end.tv_nsec + Int(attoseconds / 1_000_000_000)
        end.tv_sec += Int(min(seconds, 86_400)) + nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        monitor.lock()
        while !isSignalled, monitor.wait(until: end) {}
        isSignalled = false
        monitor.unlock()
    }
}
