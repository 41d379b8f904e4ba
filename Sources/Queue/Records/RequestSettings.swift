internal import FoundationEssentials

/// How the requests of a batch are made and which responses are accepted. Set once, when the batch is created; every worker follows it. nil
/// is the default, as documented by ``ImageDownloader/Configuration``. All durations are seconds.
public struct RequestSettings: Sendable, Codable, Equatable {
    /// Sent with every request, replacing a default of the same name: `Name: value`, or `Name:` for none. Every reader of the queue can
    /// read them in Redis: secrets belong in the settings of the workers.
    public var headers: [String]?
    /// A URL or an e-mail address for the User-Agent.
    public var contact: String?
    /// Connect timeout.
    public var connectTimeout: Double?
    /// Idle timeout: time without a byte.
    public var timeout: Double?
    /// Time a URL may spend with a connection, over all tries; 0: no limit.
    public var maxTime: Double?
    /// Requests for a URL before it fails.
    public var tries: Int?
    /// Bytes of the largest image; a worker may have its own maximum.
    public var maxSize: Int?
    /// Concurrent transfers to one host, over all workers and batches of the queue; 0: no limit. If transfers of several batches wait for a
    /// host, the lowest of their limits applies.
    public var maxPerHost: Int?
    /// Requests per second to one host, over all workers and batches in the same way.
    public var ratePerHost: Double?
    /// Whether each site's robots.txt is read first.
    public var asksRobots: Bool?
    /// Whether `X-Robots-Tag` can refuse an image; the commands set it unless they are told otherwise.
    public var respectsRobotsTag: Bool?
    /// Hosts to which that does not apply: names, in lower case, or `*.domain` for all names below a domain.
    public var ownHosts: [String]?

    /// The defaults.
    public init() {}

    /// Range of positive times in seconds, from a millisecond to a day.
    package static let times = 0.001...86_400.0
    package static let triesRange = 1...100, sizes = 1...4 << 30
    package static let rates = 0.001...100_000.0
    /// The most headers a batch or one URL may have, and the most bytes of them.
    package static let maxHeaders = 64, mostHeaderBytes = 16 << 10
    /// The most hosts of one's own a batch may name.
    package static let maxOwnHosts = 1_000

    /// A copy with every value in its range, without invalid ones: any client of Redis can write anything.
    package var bounded: RequestSettings {
        var all = self
        all.headers = headers.map { lines in
            let good = lines.prefix(Self.maxHeaders).filter { Self.header($0)?.isValid == true }
            return good.reduce(0) { $0 + $1.utf8.count } <= Self.mostHeaderBytes ? Array(good) : []
        }
        all.contact = contact.flatMap { Self.isContact($0) ? $0 : nil }
        all.connectTimeout = connectTimeout?.bounded(by: Self.times)
        all.timeout = timeout?.bounded(by: Self.times)
        all.maxTime = maxTime?.bounded(by: 0...Self.times.upperBound)
        all.tries = tries?.bounded(by: Self.triesRange)
        all.maxSize = maxSize?.bounded(by: Self.sizes)
        all.maxPerHost = maxPerHost.map { max(0, $0) }
        all.ratePerHost = ratePerHost?.bounded(by: Self.rates)
        all.ownHosts = ownHosts.map { Array($0.prefix(Self.maxOwnHosts)) }
        return all
    }

    /// A copy in which the values of `other` replace these.
    package func overridden(by other: RequestSettings) -> RequestSettings {
        var all = self
        for option in Self.table { option.copy(other, &all) }
        return all
    }

    /// `Name: value`; nil if invalid. A header without a value is not sent.
    package static func header(_ line: String) -> HTTPHeader? {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let value = line.utf8[colon...].dropFirst().drop { $0 == UInt8(ascii: " ") }
        return HTTPHeader(String(line[..<colon]), String(Substring(value)))
    }

    /// Whether the text is safe in a User-Agent, as a contact for server operators.
    package static func isContact(_ text: String) -> Bool {
        let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x28 && $0 != 0x29 }
        return isPlain && (text.contains("@") || text.hasPrefix("http://") || text.hasPrefix("https://"))
    }
}

extension Comparable {
    fileprivate func bounded(by range: ClosedRange<Self>) -> Self { min(max(self, range.lowerBound), range.upperBound) }
}

// MARK: - The table

extension RequestSettings {
    /// One of the settings: its name on a command line and in JSON, and its value for display.
    package struct Option: Sendable {
        package let flag: String
        package let text: @Sendable (RequestSettings) -> String?
        /// Takes the value of the first, if it has one.
        fileprivate let copy: @Sendable (RequestSettings, inout RequestSettings) -> Void

        fileprivate init<Value: Sendable>(
            _ flag: String, _ path: any WritableKeyPath<RequestSettings, Value?> & Sendable,
            _ shown: @escaping @Sendable (Value) -> String
        ) {
            self.flag = flag
            text = { $0[keyPath: path].map(shown) }
            copy = { from, to in if let value = from[keyPath: path] { to[keyPath: path] = value } }
        }
    }

    static func time(_ seconds: Double) -> String {
        seconds == seconds.rounded() && abs(seconds) < 1e15 ? "\(Int(seconds))s" : "\(seconds)s"
    }

    package static let table: [Option] = {
        @Sendable func list(_ value: [String]) -> String { value.joined(separator: ",") }
        return [
            // Names only: values may be secret.
            Option("--header", \.headers) { $0.map { String($0.prefix { $0 != ":" }) }.joined(separator: ",") },
            Option("--contact", \.contact) { $0 },
            Option("--connect-timeout", \.connectTimeout) { time($0) },
            Option("--timeout", \.timeout) { time($0) },
            Option("--max-time", \.maxTime) { time($0) },
            Option("--tries", \.tries) { "\($0)" },
            Option("--max-size", \.maxSize) { "\($0)" },
            Option("--max-per-host", \.maxPerHost) { "\($0)" },
            Option("--rate-per-host", \.ratePerHost) { "\($0)" },
            Option("--robots", \.asksRobots) { $0 ? "yes" : "no" },
            Option("--ignore-robots-tag", \.respectsRobotsTag) { $0 ? "no" : "yes" },
            Option("--own-host", \.ownHosts, list),
        ]
    }()

    /// The settings in which two differ, for messages.
    package func differences(from other: RequestSettings) -> [String] {
        Self.table.compactMap { option in
            let (now, was) = (option.text(self), option.text(other))
            guard now != was || option.flag == "--header" && headers != other.headers else { return nil }
            return "\(option.flag) \(now ?? "not given"), was \(was ?? "not given")"
        }
    }
}
