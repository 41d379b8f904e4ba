internal import Prefetch

/// Why the rest of a list is not in Redis yet, and what helps.
enum FeedingText {
    /// * `hint`: what else a person may want to know of workers.
    static func lines(_ wait: ListFeeder.Wait, _ hint: String = "") -> [String] {
        switch wait {
        case .window: ["the list is longer than the window; feeding it as workers take it\(hint)"]
        case .memory:
            [
                "Redis is full: it has reached its maxmemory and takes no more jobs until workers have taken some\(hint)",
                "hint: to go on at once, give it more memory: redis-cli CONFIG SET maxmemory 2gb",
            ]
        }
    }
}
