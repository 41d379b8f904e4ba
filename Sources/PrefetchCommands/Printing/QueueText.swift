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
        if let count = orders.concurrency {
            parts.append("every worker is set to at most \(Wording.count(count, "transfer")) at once")
        }
        return parts.isEmpty ? nil : parts.joined(separator: "\n")
    }

    static func object(_ queue: PrefetchQueue, _ orders: QueueControl.QueueSettings) -> JSONText {
        .object([
            ("name", .string(queue.catalog.queueName)), ("paused", .bool(orders.isPaused)),
            ("max_concurrent_downloads", orders.concurrency.map { .int($0) } ?? .null),
        ])
    }
}
