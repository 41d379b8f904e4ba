internal import Prefetch
internal import WebImage

/// URLs and bytes a second over the last 8 seconds, for the three lines of a terminal (``InlineFrame``). Plain lines have the mean since
/// the line before (``ProgressLines``), `status` that of the whole batch (``BatchText``), the dashboard one with its spread (``DashHistory``).
struct ProgressRate {
    private static let span = Duration.seconds(8)

    private var samples: [(at: ContinuousClock.Instant, finished: Int, bytes: Int)] = []

    /// When something ended last.
    private var moved: ContinuousClock.Instant?

    /// URLs a second.
    private(set) var urls = 0.0
    /// Bytes a second.
    private(set) var bytes = 0.0

    /// Takes a reading.
    mutating func add(_ counts: PrefetchCounts, at now: ContinuousClock.Instant = .now) {
        if moved == nil || counts.finished > samples.last?.finished ?? 0 { moved = now }
        samples.append((now, counts.finished, counts.bytes))
        // The oldest that is kept is at least the span old, so that a steady rate is measured over all of it.
        while samples.count > 2, now - samples[1].at >= Self.span { samples.removeFirst() }
        let first = samples[0]
        let seconds = (now - first.at) / .seconds(1)
        guard seconds > 0.05 else { return }
        // Redis may have lost its last second.
        urls = max(0, Double(counts.finished - first.finished) / seconds)
        bytes = max(0, Double(counts.bytes - first.bytes) / seconds)
    }

    /// Seconds until so many are left no more; nil while nothing moves: what was to be over long ago, and is not, waits for something that no
    /// rate tells of.
    func seconds(for left: Int) -> Double? {
        guard urls > 0, let last = samples.last, let moved else { return nil }
        let seconds = Double(left) / urls
        return (last.at - moved) / .seconds(1) <= max(3, 2 * seconds) ? seconds : nil
    }
}

/// The `rate` events of `--progress json`: one a second, since those of single URLs have neither a rate nor an ETA.
struct RateEvents {
    private static let interval = Duration.seconds(1)

    private var rate = ProgressRate()
    private var last: ContinuousClock.Instant?

    /// Whether an event is due, for a reading of the batch. The first reading is what rates count from.
    mutating func isDue(_ counts: PrefetchCounts, at now: ContinuousClock.Instant = .now) -> Bool {
        if let last, now - last < Self.interval { return false }
        defer { last = now }
        rate.add(counts, at: now)
        return last != nil
    }

    /// The ETA is null while the batch is paused, and while its last URLs wait for something that no rate predicts.
    func object(_ status: BatchStatus, _ load: WorkerLoad) -> JSONText {
        let left = status.total - status.counts.finished
        let isHeld = status.isHeld || load.isPaused || load.last != nil
        let seconds = isHeld ? nil : rate.seconds(for: left)
        return .object([
            ("event", .string("rate")), ("finished", .int(status.counts.finished)), ("total", .int(status.total)),
            ("rate", .number(rate.urls)), ("eta_s", seconds.map { .number($0, digits: 1) } ?? .null),
            ("MBps", .number(rate.bytes / 1e6)), ("in_flight", .int(load.beside(left: left).inFlight)),
            ("limit", load.limit.map { .string($0.cause.rawValue) } ?? .null),
        ])
    }
}
