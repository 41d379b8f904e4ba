internal import Glibc

/// CLOCK_MONOTONIC: never goes back, and is shared by all processes of a machine.
package enum MonotonicClock {
    package static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
