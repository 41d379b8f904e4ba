/// Which of the waiting downloads is started next (SDWebImageDownloaderExecutionOrder).
public enum DownloadExecutionOrder: String, Sendable, CaseIterable {
    /// First in, first out. The default.
    case fifo
    /// Last in, first out.
    case lifo
}
