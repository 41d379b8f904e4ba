internal import Glibc

/// The machine's processors.
package enum Processors {
    /// Those that are online, at least 1.
    package static var count: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}

/// The wall clock, for records that people read; nothing is decided by it.
enum WallClock {
    /// Seconds since 1970.
    static var seconds: Int { time(nil) }
}
