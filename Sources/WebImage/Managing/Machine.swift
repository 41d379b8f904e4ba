internal import Glibc

/// The machine's processors.
enum Processors {
    /// Those that are online, at least 1.
    static var count: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}

/// The wall clock, for records that people read; nothing is decided by it.
enum WallClock {
    /// Seconds since 1970.
    static var seconds: Int { time(nil) }
}
