internal import Prefetch
internal import WebImage

/// How many URLs, images and bytes a batch ends a second, over the last 8 seconds, and how long the rest takes at that. Every view has its
/// rates and its ETA from here, with the time of Redis.
struct ProgressRate: Sendable {
    private struct Sample {
        var at: Int
        var finished: Int, images: Int, bytes: Int

        init(_ mark: ProgressMark) {
            (at, finished, images) = (mark.at, mark.finished, mark.finished - mark.skipped)
            bytes = mark.bytes
        }
    }

    /// Milliseconds.
    private static let span = 8_000

    private var samples: [Sample] = []
    /// When something ended last.
    private var moved = 0

    private(set) var urls = 0.0
    private(set) var images = 0.0
    private(set) var bytes = 0.0

    /// Whether there are two readings to compare.
    var isKnown: Bool { samples.count > 1 }

    /// Takes a reading of a batch. The first one brings along where the batch was some seconds before.
    /// * `age`: of the reading, while there is no newer one.
    mutating func add(_ status: BatchStatus, age: Duration = .zero) {
        if samples.isEmpty {
            samples = status.marks.filter { $0.at < status.at }.map(Sample.init)
            moved = max(status.created, status.last)
        }
        moved = max(moved, status.last)
        let counts = status.counts
        append(
            ProgressMark(
                at: status.at + max(0, Int(age / .milliseconds(1))), finished: counts.finished,
                skipped: counts.skipped, bytes: counts.bytes))
    }

    /// Adds a reading of a part of a batch, which has no time of its last end.
    mutating func add(_ mark: ProgressMark) {
        if mark.finished > samples.last?.finished ?? -1 { moved = max(moved, mark.at) }
        append(mark)
    }

    private mutating func append(_ mark: ProgressMark) {
        if let last = samples.last, mark.at <= last.at { return }
        samples.append(Sample(mark))
        // The oldest that is kept is at least the span old, so that a steady rate is measured over all of it.
        while samples.count > 2, mark.at - samples[1].at >= Self.span { samples.removeFirst() }
        let (first, last) = (samples[0], samples[samples.count - 1])
        let seconds = Double(last.at - first.at) / 1000
        guard seconds > 0.05 else { return }
        // Redis may have lost its last second. What ended before the span says nothing about now.
        let isOver = last.at - moved >= Self.span
        func rate(_ part: KeyPath<Sample, Int>) -> Double {
            isOver ? 0 : max(0, Double(last[keyPath: part] - first[keyPath: part]) / seconds)
        }
        (urls, images, bytes) = (rate(\.finished), rate(\.images), rate(\.bytes))
    }

    /// Seconds until so many URLs have ended at the present rate; nil while none ends, or when the estimate has long passed: then they wait for
    /// something that the rate does not show.
    func seconds(for left: Int) -> Double? {
        guard urls > 0, let last = samples.last else { return nil }
        let seconds = Double(left) / urls
        return Double(last.at - moved) / 1000 <= max(3, 2 * seconds) ? seconds : nil
    }

    /// Seconds until the end of the batch whose readings it has; nil also of a pipe that has not ended, while it or the queue is paused, while no worker
    /// works, and while its last URLs wait for something.
    func eta(_ status: BatchStatus, _ load: WorkerLoad) -> Double? {
        guard status.state == .running, status.expectedTotal != nil, !status.isEffectivelyPaused, load.workers > 0,
            !load.isPaused,
            !load.isIdle,
            load.last == nil
        else { return nil }
        return seconds(for: status.left)
    }

    /// URLs a second over all of the time of a batch, for what tells of it as a whole.
    static func mean(_ status: BatchStatus) -> Double { Double(status.counts.finished) / max(status.elapsed, 0.001) }
}

/// The `rate` events of `--progress json`: one a second, since those of single URLs have neither a rate nor an ETA.
struct RateEvents {
    private static let interval = Duration.seconds(1)

    private var rate = ProgressRate()
    private var last: ContinuousClock.Instant?

    /// Whether an event is due, for a reading of the batch. The first reading is what rates count from.
    mutating func isDue(_ status: BatchStatus, at now: ContinuousClock.Instant = .now) -> Bool {
        if let last, now - last < Self.interval { return false }
        defer { last = now }
        rate.add(status)
        return last != nil
    }

    func event(_ status: BatchStatus, _ load: WorkerLoad) -> EventAnswer {
        EventAnswer(
            name: "rate", finished: status.counts.finished, total: status.total,
            pace: EventAnswer.Pace(load: load, urls: rate.urls, bytes: rate.bytes, eta: rate.eta(status, load)))
    }
}
