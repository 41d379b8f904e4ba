internal import CLinux
internal import Prefetch
internal import Threading

/// How the file descriptors that a worker may have are divided.
struct DescriptorBudget: Equatable {
    /// With fewer a worker is refused.
    static let least = 128
    /// Connections to Redis, files of locks and logs, event loops, and what is open for a moment.
    private static let own = 64

    /// What is left for transfers.
    private let rest: Int

    /// * `limit`: how many there may be.
    init(limit: Int) {
        // Leaf directories of the cache are kept open, as many as that.
        rest = limit - Self.own - min(256, limit / 4)
    }

    /// The most transfers at once: each has a socket, connections are kept for later ones, some look a name up or try two addresses, and a
    /// large body has a file.
    var transfers: Int { max(1, rest / 6) }

    /// The most silent transfers beside so many others.
    func silent(beside transfers: Int) -> Int { max(1, (rest - 4 * transfers) / 2) }

    /// Raises the soft limit to the hard one, and looks whether that is enough.
    /// - Throws: `configuration` where it is not.
    static func raised() throws(PrefetchError) -> DescriptorBudget {
        // One that cannot be raised may be enough.
        _ = clinux_raise_file_limit()
        let limit = Descriptors.limit
        guard limit >= least else {
            throw PrefetchError(
                .configuration, "this process may open \(limit) files at once, and a worker needs \(least)",
                hint: "ulimit -Hn 1024, or LimitNOFILE=1024 in the unit")
        }
        return DescriptorBudget(limit: limit)
    }

    /// What to say where fewer transfers fit than are wanted; nil where all do.
    func note(wanted: Int) -> String? {
        guard wanted > transfers else { return nil }
        return
            "note: the limit of open files, \(Descriptors.limit), is enough for \(transfers) transfers at once and not for \(wanted); "
            + "raise it with ulimit -Hn 65536, or LimitNOFILE=65536 in the unit"
    }
}
