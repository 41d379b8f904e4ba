internal import Prefetch
internal import WebImage

/// What was said to all workers of a queue, in words and as JSON.
enum QueueText {
    /// Nil where nothing was.
    /// * `words`: what a command needs to find the queue.
    static func line(_ orders: QueueControl.QueueSettings, words: String) -> String? {
        var parts: [String] = []
        if orders.isPaused {
            parts.append("the queue is paused; resume it: prefetch-coord resume --all\(words)")
        }
        switch orders.concurrency {
        case .fixed(let count):
            parts.append("every worker is set to at most \(Wording.count(count, "transfer")) at once")
        case .auto: parts.append("every worker is set to find its number of transfers: auto")
        case nil: break
        }
        return parts.isEmpty ? nil : parts.joined(separator: "\n")
    }

    static func object(_ setting: ConcurrentDownloads) -> JSONText { setting.count.map { .int($0) } ?? .string("auto") }

    static func object(_ queue: PrefetchQueue, _ orders: QueueControl.QueueSettings) -> JSONText {
        .object([
            ("name", .string(queue.catalog.queueName)), ("paused", .bool(orders.isPaused)),
            ("max_concurrent_downloads", orders.concurrency.map(object) ?? .null),
        ])
    }
}
