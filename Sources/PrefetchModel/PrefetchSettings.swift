/// How a list is prefetched, by one process or by many: its turn among others, and when it ends early.
public struct PrefetchSettings: Sendable, Equatable {
    /// A number of URLs, or a share of a list in percent.
    public enum Share: Sendable, Equatable, CustomStringConvertible {
        /// So many URLs; at least 0.
        case count(Int)
        /// So many of a hundred, 0 to 100.
        case percent(Double)

        /// `25`, `99.9%`.
        public var description: String {
            switch self {
            case .count(let count): "\(count)"
            case .percent(let share): "\(share == share.rounded() ? "\(Int(share))" : "\(share)")%"
            }
        }

        /// Reads ``description``: digits, and a point in a share. 0 to 100 percent; nil: neither.
        public init?(argument: String) {
            let isShare = argument.hasSuffix("%")
            let digits = isShare ? argument.dropLast() : argument[...]
            guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) || (isShare && $0 == 0x2E) }),
                let number = Double(digits), number <= (isShare ? 100 : 1e12)
            else { return nil }
            self = isShare ? .percent(number) : .count(Int(number))
        }

        /// Whether it is in range.
        var isValid: Bool {
            switch self {
            case .count(let count): count >= 0
            case .percent(let share): (0...100).contains(share)
            }
        }

        /// Whether it is nothing at all.
        var isNone: Bool { self == .count(0) || self == .percent(0) }

        /// Whether so many of so many are within it.
        package func allows(_ failed: Int, of total: Int) -> Bool {
            switch self {
            case .count(let count): failed <= count
            case .percent(let share): Double(failed) * 100 <= share * Double(total)
            }
        }

        /// URLs of a list with `total` of them, rounded up.
        package func count(of total: Int) -> Int {
            switch self {
            case .count(let count): count
            case .percent(let share): Int((Double(total) * share / 100).rounded(.up))
            }
        }
    }

    /// The name of a batch; nil (default): the name of its list and a hash. A list of one process has none.
    public var name: String?
    /// Its priority among the running lists; default `normal`.
    public var priority = PrefetchPriority.normal
    /// Which of its URLs start first; default `fifo`: in list order.
    public var order = PrefetchOrder.fifo
    /// Its slot: the running list in it is cancelled, like the load of an image view that gets a new URL. 1 to 64 of `A-Z a-z 0-9 _ -`.
    public var slot: String?
    /// When it ends at the latest, after its start; URLs that are open then end as `cancelled`. nil (default): never.
    public var deadline: Duration?
    /// Ends it when so many URLs have ended; nil (default): when all have.
    public var finishAt: Share?
    /// Ends it when more URLs were skipped, a share of those that have ended; nil (default): never.
    public var maxFailures: Share?

    /// The defaults.
    public init() {}

    /// The defaults, and a ``slot``.
    public init(slot: String?) { self.slot = slot }

    /// Checks all values.
    /// - Throws: `invalidConfiguration` with the member and its range.
    public func validate() throws(WebImageError) {
        func check(_ holds: Bool, _ rule: String) throws(WebImageError) {
            guard holds else { throw WebImageError(.invalidConfiguration, rule) }
        }
        try check(slot.map(Self.isName) ?? true, "slot must be 1 to 64 letters, digits, '_' or '-'")
        try check((deadline ?? .seconds(1)) > .zero, "deadline must be more than 0")
        try check(finishAt?.isValid ?? true, "finishAt must be a number of URLs or 0 to 100 percent")
        try check(maxFailures?.isValid ?? true, "maxFailures must be a number of URLs or 0 to 100 percent")
    }

    /// Whether a queue or a slot can have this name.
    package static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x5F || byte == 0x2D
            }
    }
}

extension PrefetchSettings: SettingRecord {
    /// Whether a batch can have this name: dots are allowed, but for the first one.
    package static func isBatchName(_ text: String) -> Bool {
        isName(text.replacing(".", with: "-")) && !text.hasPrefix(".")
    }

    /// ``deadline`` in seconds.
    private var timeLimit: Double? {
        get { deadline.map { $0 / .seconds(1) } }
        set { deadline = newValue.map { .seconds($0) } }
    }

    package static let settings: [Setting<PrefetchSettings>] = [
        Setting(
            "--name", \.name, .text("name", rule: "is 1 to 64 letters, digits, '.', '_' or '-'", where: isBatchName),
            is: .handling, usual: "the name of the list and a hash of it", "Name of the batch."),
        Setting(
            "--deadline", \.timeLimit, .time(0.001...3_153_600_000), is: .live, usual: "no limit",
            "Cancel the batch after this time: 10m, 2h."),
        Setting(
            "--max-failures", \.maxFailures, .share("is a number of URLs or a share up to 100%"), is: .live,
            usual: "never",
            "Cancel the batch once more URLs than this have failed; see --allow-failures.",
            more: "A share counts from 1,000 ended URLs on.", foreign: ["--max-errors", "--error-limit"]),
        Setting(
            "--priority", \.priority, .choice("priority"), is: [.queue, .live, .handling],
            "Priority among the batches of the queue: high, normal or low."),
        Setting(
            "--order", \.order, .choice("order"), is: [.queue, .live, .handling],
            "Which jobs start first: fifo or lifo."),
        Setting(
            "--finish-at", \.finishAt,
            .share("is a share up to 100% or a number of URLs, above 0", { !$0.isNone }), is: .queue, usual: "all",
            "End the batch when this many of its URLs have ended."),
        Setting(
            "--slot", \.slot, .text("name", rule: "is 1 to 64 letters, digits, '_' or '-'", where: isName),
            is: [.queue, .handling],
            "Name that one running batch can have; the batch that has it is cancelled."),
    ].section("Batch")
}

extension SettingKind where Value == PrefetchSettings.Share {
    fileprivate static func share(
        _ rule: String, _ isFine: @escaping @Sendable (PrefetchSettings.Share) -> Bool = { _ in true }
    ) -> SettingKind {
        SettingKind("n|n%", rule: rule, { Value(argument: $0).flatMap { isFine($0) ? $0 : nil } }, { "\($0)" })
    }
}
