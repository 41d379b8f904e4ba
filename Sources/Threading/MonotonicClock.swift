internal import Glibc

/// The machine's clock that never goes back, CLOCK_MONOTONIC: the same for all processes of a machine, from its start on.
package enum MonotonicClock {
    /// Seconds since the machine's start.
    package static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
