/// In which order the jobs of a batch start (SDWebImageDownloaderExecutionOrder): the end of its list that is popped.
public enum PrefetchOrder: String, Sendable, CaseIterable, Codable {
    case fifo, lifo
}
