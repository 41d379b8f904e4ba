/// Detects a program that cannot run: five deaths within ten seconds without progress, or 20 in any time. `WorkerSupervisor` starts a
/// worker again after ``pause(beforeRestart:)``, and gives up when a death has a verdict, counting all its workers together; at once if the exit
/// code states that a worker cannot work here.
///
/// Two kinds of progress exist, and both are finite, so a supervisor whose workers die ends:
/// - The progress number: outcomes other than `poison`. A batch has as many as it has URLs, and none is taken back.
/// - A death that narrows: it left the name of a URL that was being decoded, and that URL had less than three deaths of this kind. Each
///   reduces the sum, over the URLs without an outcome, of 3 - their deaths of this kind, by one at least, and nothing raises it: a URL
///   with three ends as `poison` and is not decoded. That a job went back to its list is no progress: it could for ever.
///
/// So a batch of n URLs has at most n steps of the first kind and 3n deaths of the second, and at most ``most`` - 1 other deaths between
/// two of them. A decoder that dies of every image would take all 3n: after ``mostNarrowing`` without progress of the first kind it is the
/// decoder, not the image.
struct CrashLoop: Sendable {
    /// Deaths within ``window``.
    static let limit = 5
    static let window = Duration.seconds(10)
    /// Deaths in any time: on a slow machine five take longer than the window.
    static let most = 20
    /// Deaths that narrow: 100 URLs that end as `poison`.
    static let mostNarrowing = 300

    enum Verdict: Sendable, Equatable {
        /// It dies within the window.
        case dies
        /// It has died this often without progress.
        case diesSlowly
        /// It runs, and dies of every image.
        case diesOfAll
    }

    private var progress: Int?
    private var deaths: [ContinuousClock.Instant] = []
    /// Deaths since the last progress, and those that narrow since the last outcome.
    private var (count, narrowing) = (0, 0)

    /// Counts a death.
    /// * `progress`: any number that changes when work gets done; nil: there is none, and only those within the window count.
    /// * `narrows`: whether it brought a URL closer to its end as `poison`.
    /// - Returns: why a restart makes no sense, if so.
    mutating func died(at now: ContinuousClock.Instant, progress: Int? = nil, narrows: Bool = false) -> Verdict? {
        if progress != self.progress { (narrowing, count, deaths) = (0, 0, []) }
        self.progress = progress
        if narrows {
            (count, deaths) = (0, [])
            narrowing += 1
            return narrowing >= Self.mostNarrowing ? .diesOfAll : nil
        }
        deaths.removeAll { now - $0 > Self.window }
        deaths.append(now)
        if progress != nil { count += 1 }
        if deaths.count >= Self.limit { return .dies }
        return count >= Self.most ? .diesSlowly : nil
    }

    /// The back-off before restart number `count` in a row (from 1): 100 ms, doubled up to 2 s.
    static func pause(beforeRestart count: Int) -> Duration {
        .milliseconds(min(2000, 100 << min(max(count - 1, 0), 5)))
    }
}
