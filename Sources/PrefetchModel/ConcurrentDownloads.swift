/// How many transfers a worker may have at once: a number, or `auto`, by which the worker finds it while it works.
public enum ConcurrentDownloads: Sendable, Hashable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// The worker finds the number, from 4 to 1,024.
    case auto
    /// This number, 1 to 4,096.
    case fixed(Int)

    /// A fixed number.
    public init(integerLiteral value: Int) { self = .fixed(value) }

    /// `auto`, or a number as Redis and the command line have it; nil: neither.
    public init?(_ text: String) {
        guard text != "auto" else {
            self = .auto
            return
        }
        guard let count = Int(text) else { return nil }
        self = .fixed(count)
    }

    /// `auto`, or the number: the form that ``init(_:)`` reads.
    public var description: String {
        switch self {
        case .auto: "auto"
        case .fixed(let count): String(count)
        }
    }

    /// nil for `auto`.
    public var count: Int? {
        guard case .fixed(let count) = self else { return nil }
        return count
    }
}
