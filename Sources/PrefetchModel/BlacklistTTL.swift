/// How long URLs stay on the blacklist before one request is made for them again, by the reason of their failure. All durations are
/// seconds, at most a century; 0: they never lapse.
public struct BlacklistTTL: Sendable, Equatable {
    /// What ``FailedURLPolicy/smart`` lists.
    public enum Reason: String, Sendable, CaseIterable {
        /// 404: pages come back.
        case notFound = "404"
        /// 410: the server says that it is gone for good.
        case gone = "410"
        /// 451: forbidden by law.
        case unavailableForLegalReasons = "451"
        /// A complete body that is not an image.
        case badImage
        /// Its bytes ended workers.
        case poison

        package init?(_ outcome: PrefetchOutcome, httpStatus: Int?) {
            switch outcome {
            case .httpError: self.init(rawValue: httpStatus.map(String.init) ?? "")
            case .badImage: self = .badImage
            case .poison: self = .poison
            default: return nil
            }
        }
    }

    private static let longest = 3_153_600_000.0
    private static let day = 86_400.0

    private var seconds: [Reason: Double]

    /// The defaults: a week for 404 and poison, 30 days for 410 and 451, a day for images that are none.
    public init() {
        seconds = [
            .notFound: 7 * Self.day, .gone: 30 * Self.day, .unavailableForLegalReasons: 30 * Self.day,
            .badImage: Self.day, .poison: 7 * Self.day,
        ]
    }

    /// The same for every reason.
    public init(_ seconds: Double) {
        self.init()
        for reason in Reason.allCases { self[reason] = seconds }
    }

    /// The seconds of a reason.
    public subscript(reason: Reason) -> Double {
        get { seconds[reason] ?? 0 }
        set { seconds[reason] = newValue >= 0 ? min(newValue, Self.longest) : 0 }
    }

    /// Milliseconds until a URL with this failure lapses; 0: never, as with a failure that is none of the reasons.
    package func milliseconds(_ outcome: PrefetchOutcome, httpStatus: Int?) -> Int {
        guard let time = Reason(outcome, httpStatus: httpStatus).map({ self[$0] }), time > 0 else { return 0 }
        return max(1, Int(time * 1000))
    }

    /// `404=7d,410=30d,…`, or one time if all are the same.
    package var text: String {
        let times = Reason.allCases.map { Self.text(self[$0]) }
        guard Set(times).count > 1 else { return times[0] }
        return zip(Reason.allCases, times).map { "\($0.rawValue)=\($1)" }.joined(separator: ",")
    }

    private static func text(_ seconds: Double) -> String {
        for (name, unit) in [("d", day), ("h", 3600), ("m", 60)]
        where seconds >= unit && seconds.remainder(dividingBy: unit) == 0 {
            return "\(Int(seconds / unit))\(name)"
        }
        return seconds == seconds.rounded() ? "\(Int(seconds))s" : "\(seconds)s"
    }

    /// Reads ``text``, or times for some of the reasons, where what is not named has its default: `12h`, `404=7d,badImage=0`.
    package init?(argument: String) {
        if let all = Age(argument: argument) {
            self.init(all.seconds)
            return
        }
        self.init()
        for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
            guard words.count == 2, let reason = Reason(rawValue: words[0]), let time = Age(argument: words[1])
            else { return nil }
            self[reason] = time.seconds
        }
    }
}
