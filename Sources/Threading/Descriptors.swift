internal import Glibc

/// File descriptors of this process: what lasts and comes by the hundred, as sockets and files of bodies, stops short of the limit, so that
/// something is left for what must never fail. Where none was left, libdispatch ends the process when it looks at its threads.
package enum Descriptors {
    /// How many there may be, as setrlimit(2) has it now.
    package static var limit: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        return Int(clamping: limit.rlim_cur)
    }

    /// The number from which on nothing is opened that lasts: the kernel gives out the lowest that is free, so that as many are in use. Read
    /// once; raise the limit before.
    package static let ceiling: Int32 = {
        let limit = Self.limit
        return Int32(clamping: limit - min(32, limit / 4))
    }()

    /// Takes a new descriptor that lasts; closes it and fails with EMFILE where it is beyond the ceiling.
    ///
    /// * `descriptor`: what an open call returned.
    /// - Returns: the same, or -1 with `errno`.
    package static func admit(_ descriptor: Int32) -> Int32 {
        guard descriptor >= ceiling else { return descriptor }
        close(descriptor)
        errno = EMFILE
        return -1
    }
}
