/// The order in which the jobs of a batch start (SDWebImageDownloaderExecutionOrder): which end of its list is popped.
public enum PrefetchOrder: String, Sendable, CaseIterable, Codable {
    /// In list order.
    case fifo
    /// From the end of the list.
    case lifo
}

/// The priority of a batch. While all three have jobs, workers claim 11 : 4 : 1, so the lowest never starves (`CLAIM.lua`).
public enum PrefetchPriority: String, Sendable, CaseIterable, Codable {
    /// 11 of 16 claims.
    case high
    /// 4 of 16 claims; the default.
    case normal
    /// 1 of 16 claims.
    case low
}
