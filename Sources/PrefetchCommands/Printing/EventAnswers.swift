internal import Prefetch
internal import WebImage

/// A line of `watch --json` and of `--progress json`; its members depend on its name.
struct EventAnswer: Record {
    /// Of an event `rate`: once a second, since events of single URLs have neither a rate nor an ETA.
    struct Pace {
        let load: WorkerLoad, urls: Double, bytes: Double, eta: Double?
    }

    let name: String
    var finished: Int?, total: Int?
    var url: String?
    var finishedCount: Int?, totalCount: Int?, skippedCount: Int?
    var outcome: PrefetchOutcome??
    var pace: Pace?
    var message: String?, hint: String?

    static let fields: [Field<Self>] = [
        Field("event", about: "progress, didPrefetchURL, didFinish, completion, rate, note or error.", \.name),
        .ifKnown("finished", \.finished), .ifKnown("total", \.total), .ifKnown("url") { $0.url.map(Masked.url) },
        .ifKnown("finishedCount", \.finishedCount), .ifKnown("totalCount", \.totalCount),
        .ifKnown("skippedCount", \.skippedCount), .ifKnown("outcome", \.outcome),
        .ifKnown("rate", about: "URLs a second.") { $0.pace.map { Seconds($0.urls) } },
        .ifKnown("eta_s", about: "Null while nothing predicts it.") {
            $0.pace.map { $0.eta.map { Seconds($0, digits: 1) } }
        },
        .ifKnown("MBps") { $0.pace.map { Seconds($0.bytes / 1e6) } },
        .ifKnown("in_flight") { event in
            event.pace?.load.beside(left: (event.total ?? 0) - (event.finished ?? 0)).report.inFlight
        },
        .ifKnown("limit") { $0.pace.map(\.load.limit?.cause) },
        .ifKnown("message") { $0.message.map(Masked.sentence) }, .ifKnown("hint") { $0.hint.map(Masked.sentence) },
    ]
}

extension EventAnswer {
    init(_ event: PrefetchEvent) {
        switch event {
        case .progress(let finished, let total): self.init(name: "progress", finished: finished, total: total)
        case .didPrefetch(let url, let finished, let total, let outcome, _):
            self.init(
                name: "didPrefetchURL", url: url, finishedCount: finished, totalCount: total, outcome: .some(outcome))
        case .didFinish(let total, let skipped):
            self.init(name: "didFinish", totalCount: total, skippedCount: skipped)
        case .completion(let finished, let skipped):
            self.init(name: "completion", finishedCount: finished, skippedCount: skipped)
        }
    }
}
