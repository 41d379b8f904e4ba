internal import Glibc

/// Keeps a reserve of file descriptors. Long-lived descriptors that come by the hundred (sockets, body files) stop short of the process
/// limit, because libdispatch aborts the process if it cannot open one when it inspects its threads.
package enum Descriptors {
    package static var limit: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        return Int(clamping: limit.rlim_cur)
    }

    /// The lowest descriptor number refused to long-lived descriptors. The kernel hands out the lowest free number, so the number equals
    /// the count in use. Read once; raise the limit before.
    package static let ceiling: Int32 = {
        let limit = Self.limit
        return Int32(clamping: limit - min(32, limit / 4))
    }()

    /// Admits a new long-lived descriptor; if it is beyond the ceiling, closes it and fails with EMFILE.
    /// * `descriptor`: the result of an open call.
    /// - Returns: `descriptor`, or -1 with `errno` set.
    package static func admit(_ descriptor: Int32) -> Int32 {
        guard descriptor >= ceiling else { return descriptor }
        close(descriptor)
        errno = EMFILE
        return -1
    }
}
