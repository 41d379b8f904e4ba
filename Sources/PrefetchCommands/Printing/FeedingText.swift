internal import Prefetch

/// Why the rest of a list is not in Redis yet, and what helps.
enum FeedingText {
    /// How far a list is queued while it is fed, and what the rest waits for.
    static func progress(_ status: BatchStatus, isAlone: Bool) -> String {
        let reason =
            status.isWaitingForMemory
            ? "for Redis, which is full" : isAlone ? "for workers, and there is none" : "for workers to take jobs"
        let queued = "queued \(Wording.count(status.pushed))"
        return status.expectedTotal == nil
            ? "\(queued) URLs so far" : "\(queued) of \(status.totalText) URLs; the rest waits \(reason)"
    }

    /// * `hint`: what else a person may want to know of workers.
    static func lines(_ wait: ListFeeder.Wait, _ hint: String = "") -> [String] {
        switch wait {
        case .window: ["the list is longer than the window; feeding it as workers take it\(hint)"]
        case .shards:
            [
                "\(ShardExport.mostOpen) shards wait for their last lines; the rest of the list is queued as they are written"
            ]
        case .memory:
            [
                "Redis is full: it has reached its maxmemory and takes no more jobs until workers have taken some\(hint)",
                "hint: to continue at once, give it more memory: redis-cli CONFIG SET maxmemory 2gb",
            ]
        }
    }
}
