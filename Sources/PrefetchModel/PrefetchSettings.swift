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

        /// Whether it is in range.
        var isValid: Bool {
            switch self {
            case .count(let count): count >= 0
            case .percent(let share): (0...100).contains(share)
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
    /// - Parameter slot: as ``slot``.
    public init(slot: String? = nil) { self.slot = slot }

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

    private static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x5F || byte == 0x2D
            }
    }
}
