/// The order in which waiting downloads start (SDWebImageDownloaderExecutionOrder).
public enum DownloadExecutionOrder: String, Sendable, CaseIterable {
    /// First in, first out. The default.
    case fifo
    /// Last in, first out.
    case lifo
}
