internal import Prefetch
internal import PrefetchModel
internal import Redis
internal import WebImage

/// `status --json`.
struct StatusAnswer: Record {
    let queue: QueueAnswer
    let batches: [BatchAnswer]
    let leftOut: Int
    let snapshot: QueueSnapshot
    let health: Health
    let limit: RunLimit?

    static let fields: [Field<Self>] = [
        .version, Field("queue", \.queue), Field("batches", \.batches),
        Field(
            "batches_left_out", about: "Older batches that --limit, 100 by default, left out.", \.leftOut),
        Field("workers") { $0.snapshot.workers.sorted { $0.key < $1.key }.map(\.value) },
        Field(
            "cache",
            about:
                "What the workers write into, as they said last: the figures of all of them if they have several caches; null "
                + "if there is no worker, or none has counted yet. Bytes are those of the disk."
        ) { CacheLoad($0.snapshot.workers.values.map(\.report)).unlessUnknown },
        Field("health", \.health),
        Field(
            "limit",
            about:
                "What holds the run back: the cause of most of the open work, how many workers share it, and the option that "
                + "changes it; null if no batch that is shown is running.", \.limit),
    ]
}

/// `workers --json`.
struct WorkersAnswer: Record {
    let queue: QueueAnswer
    let workers: [WorkerRecord]

    static let fields: [Field<Self>] = [.version, Field("queue", \.queue), Field("workers", \.workers)]
}

/// What was said to all workers of a queue.
struct QueueAnswer: Record {
    let name: String
    let settings: QueueControl.QueueSettings

    static let fields: [Field<Self>] = [
        Field("name", \.name), Field("paused", \.settings.isPaused),
        Field("max_concurrent_downloads", \.settings.concurrency),
    ]

    /// Nil if nothing was.
    /// * `words`: what a command needs to find the queue.
    func line(words: String) -> String? {
        var parts: [String] = []
        if settings.isPaused { parts.append("the queue is paused; resume it: prefetch-coord resume --all\(words)") }
        switch settings.concurrency {
        case .fixed(let count):
            parts.append("every worker is set to at most \(Wording.count(count, "transfer")) at once")
        case .auto: parts.append("every worker is set to find its number of transfers: auto")
        case nil: break
        }
        return parts.isEmpty ? nil : parts.joined(separator: "\n")
    }
}

extension RunLimit: Record {
    static let fields: [Field<RunLimit>] = [
        Field("cause", \.cause), Field("detail", LimitText.detail), Field("option", LimitText.option),
        Field("workers", \.workers), Field("of_workers", \.allWorkers),
    ]
}

extension HostProblem: Record {
    static let fields: [Field<HostProblem>] = [
        Field("host", \.host), Field("state", \.state), Field("failures") { $0.state == .slow ? 0 : $0.failures },
        Field("reason", \.reason), Field("retry_in_seconds") { Int(max(0, $0.remaining.rounded(.up))) },
        Field("seconds") { Int($0.elapsed) },
        .ifKnown(
            "at_once", about: "Of a slow host, its concurrent transfers per worker.",
            { $0.state == .slow ? $0.failures : nil }),
    ]
}

// MARK: - Workers

extension WorkerRecord: Record {
    static let fields: [Field<WorkerRecord>] =
        [
            Field("id", "worker", \.id), Field("state", \.state), .column("state") { $0.stateText },
            .column("in flight") { $0.leaseLeft == nil ? nil : $0.report.flight },
            .column("finished", \.report.finished), .column("skipped", \.report.skipped),
            .column("received") { Bytes($0.report.bytes) },
            .column("names") { $0.leaseLeft == nil ? nil : $0.report.names?.line },
            Field("host", \.report.host), Field("pid", \.report.pid), Field("version", \.report.version),
            Field("since") { Moment($0.report.since) }, Field("ended", "ended") { Moment($0.ended) },
            Field("seen_seconds_ago", "seen ago") { $0.silence.map { Seconds(milliseconds: $0) } },
            Field("lease_left_seconds", "lease left") { $0.leaseLeft.map { Seconds(milliseconds: $0) } },
            Field("paused", \.report.isPaused), Field("limit", \.report.limit),
            Field("trouble", \.report.trouble.unlessEmpty), Field("held", \.report.held?.reason),
            Field("held_since") { Moment($0.report.held?.since) }, Field("warning", \.report.warning.unlessEmpty),
            Field("wanted_concurrent_downloads", \.report.wantedConcurrency),
            Field("concurrency_reason", \.report.concurrencyReason),
            Field(
                "names", about: "What its resolver was asked since its start; null if it has not said so.",
                \.report.names),
            Field("cache", about: "The id of its cache.", \.report.cache.unlessEmpty),
            Field(
                "rules", about: "What it refuses by its own settings, as options; null: nothing beyond the defaults.",
                \.report.refuses),
            Field(
                "sandbox",
                about:
                    "What holds the processes that decode its images, or why there are none; null if it has not said so.",
                \.report.sandbox.unlessEmpty),
            .column("notes") { $0.notes },
        ]
        + (WorkerReport.figures + WorkerReport.counts).filter { $0.about.place != .record }
        .map { Field($0).inside(\.report) }

    private var stateText: String { state.rawValue + (report.isPaused ? ", paused" : "") }

    /// What is wrong with it, and the name it would have if that had been free.
    private var notes: String {
        var notes: [String] = []
        if let held = report.held {
            notes.append("held: \(held.reason) since \(UTCTime.text(milliseconds: held.since)): \(report.trouble)")
        } else if !report.trouble.isEmpty {
            notes.append("paused: \(report.trouble)")
        }
        if !report.warning.isEmpty { notes.append("warning: \(report.warning)") }
        let place = "\(report.host):\(report.pid)"
        if !report.host.isEmpty, place != id { notes.append("is \(place)") }
        return notes.joined(separator: "; ")
    }
}

extension WorkerReport {
    /// `90/auto 96 (growing)`; `8/32, 3 checking, 4 stalled`: those hold no slot.
    var flight: String {
        var text = Wording.count(transferring)
        if let most = maxConcurrentDownloads {
            text += (concurrencyReason == nil ? "/" : "/auto ") + Wording.count(most)
        }
        if let reason = concurrencyReason { text += " (\(reason.text))" }
        if checking > 0 { text += ", \(Wording.count(checking)) checking" }
        if stalled > 0 { text += ", \(Wording.count(stalled)) stalled" }
        return text
    }
}

extension NameReport: Record {
    static let fields: [Field<NameReport>] = [
        Field("queries", \.queries), Field("answered", \.answered), Field("nxdomain", \.noNames),
        Field("failed", \.failed), Field("unanswered", \.unanswered),
        Field("cached", about: "Look-ups that needed no query.", \.cacheHits),
        Field("window", about: "Queries that may be in flight.", \.window),
        Field("waiting", about: "Names that are being asked for.", \.waiting),
        Field("silent_seconds", about: "For how long nothing was answered; null while it answers.") {
            $0.silence > 0 ? Seconds(milliseconds: $0.silence) : nil
        },
    ]

    /// `1,204 asked, 12 waiting (64 at once)`; empty if none was asked.
    var line: String {
        guard queries > 0 else { return "" }
        if silence > 0 {
            return "\(Wording.count(waiting)) waiting, no answer for \(Wording.seconds(Double(silence) / 1000))"
        }
        return "\(Wording.count(queries)) asked"
            + (waiting > 0 ? ", \(Wording.count(waiting)) waiting (\(Wording.count(window)) at once)" : "")
    }
}
