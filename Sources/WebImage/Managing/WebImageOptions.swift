/// How one load differs from the usual (SDWebImageOptions). Options travel by name, never by bit: the bits were renumbered in SDWebImage 5.
public struct WebImageOptions: OptionSet, Sendable, Hashable {
    /// The bits, which mean something in this process only.
    public let rawValue: UInt32

    /// By bits of this process.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Try a URL that failed before; a success takes it off the list of failed URLs.
    public static let retryFailed = WebImageOptions(rawValue: 1 << 0)
    /// Ask the cache and never the network.
    public static let fromCacheOnly = WebImageOptions(rawValue: 1 << 1)

    private static let named: [(name: String, option: WebImageOptions)] = [
        ("retryFailed", .retryFailed), ("fromCacheOnly", .fromCacheOnly),
    ]

    /// Every option's name, as it is written in SDWebImage's Swift interface.
    public static var allNames: [String] { named.map(\.name) }

    /// One option by its name; nil for a name that is none.
    public init?(name: String) {
        guard let option = Self.named.first(where: { $0.name == name })?.option else { return nil }
        self = option
    }

    /// The names of the options in this set.
    public var names: [String] { Self.named.filter { contains($0.option) }.map(\.name) }
}
