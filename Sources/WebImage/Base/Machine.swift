internal import Glibc

package enum Processors {
    package static var count: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}

/// CLOCK_REALTIME: for records that humans read, and for file ages, which use the same clock.
package enum WallClock {
    /// Whole seconds since 1970.
    static var seconds: Int { time(nil) }

    /// Seconds since 1970.
    package static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
