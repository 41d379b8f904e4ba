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
    package var inFlight = 0, stalled = 0, checking = 0, waitingForHost = 0, retrying = 0, unreported = 0
    /// Counted by REPORT since it registered.
    package var finished = 0, skipped = 0, bytes = 0
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
    /// What holds the processes that decode its images, or why there are none; empty if it has not said so.
    package var sandbox = ""
    package var cacheImages: Int?, cacheBytes: Int?, cacheLimit: Int?
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

    /// The numbers that the worker writes.
    package static let figures: [Figure<WorkerReport>] =
        [
            Figure(
                "in_flight", \.inFlight, place: .metric("in_flight_downloads"), "Transfers, including stalled ones."),
            Figure(
                "stalled", \.stalled, place: .metric("stalled_downloads"),
                "Transfers that receive no data and hold no slot; 0 with a fixed number of transfers."),
            Figure(
                "checking", \.checking, place: .metric("checking_images"),
                "URLs whose image is being checked and stored, or waits for that. If there are many of these and few transfers, "
                    + "processors or the disk are the limit."),
            Figure(
                "waiting_for_host", \.waitingForHost, place: .metric("waiting_for_host_downloads"),
                "Downloads that wait for their host's turn."),
            Figure(
                "retrying", \.retrying, place: .metric("retrying_downloads"), "Downloads that wait for their next try."),
            Figure(
                "unreported", \.unreported, place: .metric("unreported_outcomes"),
                "Outcomes that Redis has not accepted yet. If there are many for long, Redis rejects reports or is slow."
            ),
            Figure(
                "max_concurrent_downloads", \.maxConcurrentDownloads, place: .metric("max_concurrent_downloads"),
                "Transfers that may be in flight."),
            Figure("cache_images", \.cacheImages, "Images of its cache."),
            Figure("cache_bytes", \.cacheBytes, unit: .bytes, "Size of its cache on disk."),
            Figure("cache_limit", \.cacheLimit, unit: .bytes, "Limit of that size."),
            Figure(
                "rss", \.residentBytes, unit: .bytes, place: .metric("workers_resident_memory_bytes"),
                "Resident memory."),
            Figure("cpu", \.cpu, unit: .milliseconds, "Time of processors since its start."),
        ] + WorkerFigures.figures.map { $0.inside(\.figures) }

    /// The numbers that REPORT writes.
    package static let counts: [Figure<WorkerReport>] = [
        Figure("finished", \.finished, place: .json, "URLs that it was first to settle since it registered."),
        Figure("skipped", \.skipped, place: .json, "Those of them without an image."),
        Figure("bytes", \.bytes, unit: .bytes, place: .json, "Bytes of the images that it downloaded."),
    ]

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
        for figure in Self.figures + Self.counts { if let value = known(figure.name) { figure.set(&self, value) } }
        figures.processors = max(1, figures.processors)
        figures.hostWaits = WorkerFigures.hostWaits(text("host_waits"))
        limit = LimitCause(rawValue: text("limit")) ?? .starting
        (trouble, warning, oldest) = (text("trouble"), text("warning"), text("oldest"))
        held = WorkerHold(fields)
        (cache, rules, sandbox) = (text("cache"), text("rules"), text("sandbox"))
        names = fields["names"].flatMap { NameReport($0) }
        concurrencyReason = ConcurrencyReason(rawValue: text("concurrency_reason"))
        (isPaused, wantedConcurrency) = (text("paused") == "1", ConcurrentDownloads(text("wanted")))
    }

    /// Adds what another worker said: its figures, the hosts that its URLs wait for, and what its resolver was asked.
    package mutating func join(_ other: WorkerReport) {
        for figure in Self.figures + Self.counts { figure.add(other, to: &self) }
        figures.joinHosts(other.figures)
        if let more = other.names { names = (names ?? NameReport()) + more }
        if !other.trouble.isEmpty { trouble = other.trouble }
    }

    package var fields: [(String, String)] {
        var fields = [
            ("limit", limit.rawValue), ("trouble", trouble), ("warning", warning), ("oldest", oldest),
            ("cache", cache), ("sandbox", sandbox), ("concurrency_reason", concurrencyReason?.rawValue ?? ""),
            ("host_waits", figures.hostWaitsText),
        ]
        if let names { fields.append(("names", names.text)) }
        for figure in Self.figures { if let value = figure.value(self) { fields.append((figure.name, String(value))) } }
        return fields
    }
}
