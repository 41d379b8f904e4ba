internal import CLinux
internal import Prefetch
internal import Threading
internal import WebImage

struct DescriptorBudget: Equatable {
    /// The minimum for a worker.
    static let least = 128
    /// Connections to Redis, files of locks and logs, event loops, and short-lived files.
    private static let own = 64
    /// A connection with TLS takes some 30 KB.
    private static let mostIdle = 2048

    private let rest: Int

    init(limit: Int) {
        // Up to this many leaf directories of the cache are kept open.
        // A thread that decodes has a socket, and files in memory while it waits: those of many threads are more than `own` has room for.
        rest = limit - Self.own - min(256, limit / 4) - min(max(0, 3 * Processors.count - 16), limit / 16)
    }

    /// The most transfers at once: sockets, idle connections, name look-ups, second addresses, and a file for each large body.
    var transfers: Int { max(1, rest / 6) }

    /// The most stalled transfers besides `transfers` others, with a socket and a file each: half of what those leave.
    func stalled(beside transfers: Int) -> Int { max(1, (rest - 4 * transfers) / 4) }

    /// The most connections without a transfer besides `transfers` others: what the stalled ones leave, as far as it is of use.
    func idle(beside transfers: Int) -> Int {
        min(Self.mostIdle, max(1, rest - 4 * transfers - 2 * stalled(beside: transfers)))
    }

    /// Raises the soft limit to the hard one, and checks that it is enough.
    /// - Throws: `configuration` if it is not.
    static func raised() throws(PrefetchError) -> DescriptorBudget {
        // If raising fails, the limit may be enough.
        _ = clinux_raise_file_limit()
        let limit = Descriptors.limit
        guard limit >= least else {
            throw PrefetchError(
                .configuration, "this process may open \(limit) files at once, and a worker needs \(least)",
                hint: "ulimit -Hn 1024, or LimitNOFILE=1024 in the unit")
        }
        return DescriptorBudget(limit: limit)
    }

    /// The message if fewer transfers fit than are wanted; `auto` finds what fits.
    func note(wanted: ConcurrentDownloads) -> String? {
        guard let wanted = wanted.count, wanted > transfers else { return nil }
        return
            "note: the limit of open files, \(Descriptors.limit), is enough for \(transfers) transfers at once and not for \(wanted); "
            + "raise it with ulimit -Hn 65536, or LimitNOFILE=65536 in the unit"
    }
}
