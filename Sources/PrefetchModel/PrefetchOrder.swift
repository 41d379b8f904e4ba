/// The order in which the jobs of a batch start (SDWebImageDownloaderExecutionOrder): which end of its list is popped.
public enum PrefetchOrder: String, Sendable, CaseIterable {
    /// In list order.
    case fifo
    /// From the end of the list.
    case lifo
}

/// The priority of a batch. While all three have jobs, the URLs that workers claim are shared 11 : 4 : 1, so the lowest never starves
/// (`CLAIM.lua`); of those that it has claimed, a worker requests the highest first.
public enum PrefetchPriority: String, Sendable, CaseIterable {
    /// 11 of 16 URLs.
    case high
    /// 4 of 16 URLs; the default.
    case normal
    /// 1 of 16 URLs.
    case low

    package func isAbove(_ other: PrefetchPriority) -> Bool { rank < other.rank }

    private var rank: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }

    /// What makes a downloader start its URLs in this order.
    package var option: WebImageOptions {
        switch self {
        case .high: .highPriority
        case .normal: []
        case .low: .lowPriority
        }
    }
}
