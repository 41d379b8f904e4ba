/// The order in which the jobs of a batch start (SDWebImageDownloaderExecutionOrder): which end of its list is popped.
public enum PrefetchOrder: String, Sendable, CaseIterable, Codable {
    case fifo, lifo
}

/// The priority of a batch. While all three have jobs, workers claim 11 : 4 : 1, so the lowest never starves (`CLAIM.lua`).
public enum PrefetchPriority: String, Sendable, CaseIterable, Codable {
    case high, normal, low
}
