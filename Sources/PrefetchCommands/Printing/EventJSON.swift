internal import WebImage

/// Events of a batch as `watch --json` prints them, one object a line. Fields may be added, none is ever removed.
enum EventJSON {
    static func object(_ event: PrefetchEvent) -> JSONText {
        switch event {
        case .progress(let finished, let total):
            .object([("event", .string("progress")), ("finished", .int(finished)), ("total", .int(total))])
        case .didPrefetch(let url, let finished, let total, let outcome, _):
            .object([
                ("event", .string("didPrefetchURL")), ("url", .url(url)), ("finishedCount", .int(finished)),
                ("totalCount", .int(total)), ("outcome", outcome.map { .string($0.name) } ?? .null),
            ])
        case .didFinish(let total, let skipped):
            .object([("event", .string("didFinish")), ("totalCount", .int(total)), ("skippedCount", .int(skipped))])
        case .completion(let finished, let skipped):
            .object([
                ("event", .string("completion")), ("finishedCount", .int(finished)), ("skippedCount", .int(skipped)),
            ])
        }
    }
}
