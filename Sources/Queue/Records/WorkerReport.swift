internal import Redis

/// The fields of `w:<worker>` that a worker writes when it registers and with each heartbeat. Read and written only here, except for
/// `paused` and `wanted`, which scripts write.
package struct WorkerReport: Sendable, Equatable {
    /// Of several that apply, the first in this order counts.
    package enum State: String, Sendable, CaseIterable {
        /// Its lease has expired: the next heartbeat renews it, or it is reaped.
        case overdue
        /// Its disk does not respond; its jobs went back to the queue.
        case held
        /// Waits until a local fault is repaired.
        case trouble
        case paused
        case running
    }

    package var host = "", pid = 0, version = ""
    /// Milliseconds since 1970: registration, and last heartbeat.
    package var since = 0, beat = 0
    /// Length of its lease in milliseconds from a heartbeat; nil if it has never reported it.
    package var lease: Int?
    /// Current transfers, including stalled ones.
    package var inFlight = 0
    /// Transfers without incoming bytes: they hold no slot.
    package var stalled = 0
    /// URLs whose image is being checked and stored, or waits for that.
    package var checking = 0
    /// Transfers that wait for their host, and for their next try.
    package var waitingForHost = 0, retrying = 0
    /// Outcomes that Redis has not taken yet: few, unless it refuses reports or is slow.
    package var unreported = 0
    /// URLs and bytes it was first to settle since it registered; counted by REPORT, not by the worker.
    package var finished = 0, skipped = 0, bytes = 0
    /// Limit of concurrent transfers; nil if not reported.
    package var maxConcurrentDownloads: Int?
    /// Why it has this limit; nil: the limit was set, not found by the worker itself.
    package var concurrencyReason: ConcurrencyReason?
    /// What holds it back most of the last seconds.
    package var limit = LimitCause.starting
    package var figures = WorkerFigures()
    /// Its local fault; empty without one.
    package var trouble = ""
    /// Nil if nothing holds it.
    package var held: WorkerHold?
    /// Its warnings about single batches or keys of the last half minute; may be empty.
    package var warning = ""
    /// Its oldest open URLs, one line each (``OpenURLNote``).
    package var oldest = ""
    /// The id of its cache (``CacheDirectory/id``); empty if not reported.
    package var cache = ""
    /// What it refuses by its own settings: a digest, then the settings in words. Written as it registers, and by
    /// REFUSED: they change when it meets a format without a library.
    package var rules = ""
    /// Images of its cache, their bytes, and the limit; nil if not counted, or without a limit.
    package var cacheImages: Int?, cacheBytes: Int?, cacheLimit: Int?
    /// Bytes of memory, and milliseconds of CPU since its start.
    package var residentBytes: Int?, cpu: Int?
    /// What its resolver was asked; nil if not reported.
    package var names: NameReport?
    /// The settings among ``rules``; nil if none differs from its default.
    package var refuses: String? {
        let text = rules.drop { $0 != " " }.dropFirst()
        return text.isEmpty ? nil : String(text)
    }

    package var isPaused = false
    /// Its own setting of concurrent transfers; nil: the one for all workers, or its startup value.
    package var wantedConcurrency: ConcurrentDownloads?

    package init() {}

    package var transferring: Int { max(0, inFlight - stalled) }

    /// * `leaseLeft`: milliseconds until other workers may take its jobs.
    package func state(leaseLeft: Int) -> State {
        if leaseLeft <= 0 { return .overdue }
        if held != nil { return .held }
        if !trouble.isEmpty { return .trouble }
        return isPaused ? .paused : .running
    }

    /// Milliseconds since its last heartbeat; nil if it has never reported its lease.
    package func silence(leaseLeft: Int) -> Int? { lease.map { max(0, $0 - leaseLeft) } }

    package init(fields: [String: String]) {
        func known(_ name: String) -> Int? { fields[name].flatMap { Int(plausible: $0) }.map { max(0, $0) } }
        func number(_ name: String) -> Int { known(name) ?? 0 }
        func text(_ name: String) -> String { fields[name] ?? "" }
        (host, pid, version) = (text("host"), number("pid"), text("version"))
        (since, beat, lease) = (number("since"), number("beat"), known("lease"))
        (inFlight, stalled, checking) = (number("in_flight"), number("stalled"), number("checking"))
        (waitingForHost, retrying) = (number("waiting_for_host"), number("retrying"))
        unreported = number("unreported")
        (finished, skipped, bytes) = (number("finished"), number("skipped"), number("bytes"))
        maxConcurrentDownloads = known("max_concurrent_downloads")
        limit = LimitCause(rawValue: text("limit")) ?? .starting
        figures = WorkerFigures(fields: fields)
        (trouble, warning, oldest) = (text("trouble"), text("warning"), text("oldest"))
        held = WorkerHold(fields)
        (cache, rules) = (text("cache"), text("rules"))
        (cacheImages, cacheBytes, cacheLimit) = (known("cache_images"), known("cache_bytes"), known("cache_limit"))
        (residentBytes, cpu) = (known("rss"), known("cpu"))
        names = fields["names"].flatMap { NameReport($0) }
        concurrencyReason = ConcurrencyReason(rawValue: text("concurrency_reason"))
        (isPaused, wantedConcurrency) = (text("paused") == "1", ConcurrentDownloads(text("wanted")))
    }

    package var fields: [(String, String)] {
        var fields = [
            ("in_flight", String(inFlight)), ("stalled", String(stalled)), ("checking", String(checking)),
            ("waiting_for_host", String(waitingForHost)), ("retrying", String(retrying)),
            ("unreported", String(unreported)), ("limit", limit.rawValue),
            ("trouble", trouble), ("warning", warning), ("oldest", oldest), ("cache", cache),
            ("concurrency_reason", concurrencyReason?.rawValue ?? ""),
        ]
        let known = [
            ("max_concurrent_downloads", maxConcurrentDownloads), ("cache_images", cacheImages),
            ("cache_bytes", cacheBytes), ("cache_limit", cacheLimit), ("rss", residentBytes), ("cpu", cpu),
        ]
        if let names { fields.append(("names", names.text)) }
        for (name, value) in known { if let value { fields.append((name, String(value))) } }
        return fields + figures.fields
    }
}
