internal import Redis

/// The cause that held a worker back most of the last five seconds, so that what is shown does not flicker, with the figures that told it.
struct LimitMeter {
    private static let window = Duration.seconds(5)

    private var recent: [(cause: LimitCause, span: Duration)] = []
    private(set) var shown = LimitCause.starting
    /// Of the last time that each cause was told.
    private var figures: [LimitCause: WorkerFigures] = [:]

    /// The figures of what is shown.
    var shownFigures: WorkerFigures { figures[shown] ?? WorkerFigures() }

    /// Takes the cause of the last `span`, and the figures it was told from; returns what is shown from now on.
    /// * `isIdle`: whether the worker has no URL: what held it back before is over.
    mutating func take(
        _ cause: LimitCause, for span: Duration, _ measured: WorkerFigures = WorkerFigures(), isIdle: Bool = false
    ) -> LimitCause {
        figures[cause] = measured
        // States that begin and end at one moment are no matter of shares.
        if isIdle || Self.isState(cause) || Self.isState(shown) {
            recent = []
            shown = cause
            return shown
        }
        recent.append((cause, min(span, Self.window)))
        var excess = recent.reduce(.zero) { $0 + $1.span } - Self.window
        while excess > .zero, let oldest = recent.first {
            if oldest.span > excess {
                recent[0].span -= excess
                break
            }
            excess -= oldest.span
            recent.removeFirst()
        }
        var spans: [LimitCause: Duration] = [:]
        for (cause, span) in recent { spans[cause, default: .zero] += span }
        let present = spans[shown] ?? .zero
        // Of equals the one that came last.
        if let next = recent.reversed().max(by: { spans[$0.cause] ?? .zero < spans[$1.cause] ?? .zero })?.cause,
            spans[next] ?? .zero > present
        {
            shown = next
        }
        return shown
    }

    private static func isState(_ cause: LimitCause) -> Bool {
        switch cause {
        case .starting, .paused, .fault: true
        default: false
        }
    }
}
