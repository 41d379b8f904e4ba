/// How the requests of a batch are made and which responses are accepted. Set once, when the batch is created; every worker follows it. nil
/// is the default, as documented by ``ImageDownloader/Configuration``. All durations are seconds.
public struct RequestSettings: Sendable, Equatable {
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
    /// Hosts that are requested, and no others; hosts that are not; in the same form.
    public var allowHosts: [String]?, denyHosts: [String]?
    /// Regular expressions that every URL has to match.
    public var urlFilters: [String]?

    /// The defaults.
    public init() {}

    /// The most headers a batch or one URL may have, and the most bytes of them.
    package static let maxHeaders = 64, mostHeaderBytes = 16 << 10

    /// `Name: value`; nil if invalid. A header without a value is not sent.
    package static func header(_ line: String) -> HTTPHeader? {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let value = line.utf8[colon...].dropFirst().drop { $0 == UInt8(ascii: " ") }
        return HTTPHeader(String(line[..<colon]), String(Substring(value)))
    }

    /// Whether a line is a header that can be sent.
    package static func isHeader(_ line: String) -> Bool { header(line)?.isValid == true }

    /// Whether the text is safe in a User-Agent, as a contact for server operators.
    private static func isContact(_ text: String) -> Bool {
        let isPlain = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x28 && $0 != 0x29 }
        return isPlain && (text.contains("@") || text.hasPrefix("http://") || text.hasPrefix("https://"))
    }

    /// What does not let URLs pass.
    package var filters: [any ImageURLFilter] { HostFilter.filters(allowHosts, denyHosts, urlFilters) }
}

// MARK: - The rows

extension RequestSettings: SettingRecord {
    /// Positive times in seconds, to a day.
    private static let times = 0.001...86_400.0

    package static let settings: [Setting<RequestSettings>] = [
        Setting(
            "-H, --header", \.headers, .headers, is: .secret,
            "Header of every request, 'Name: value', or @FILE with one per line; an empty value removes it. Repeatable.",
            more: "One that may carry a secret is stored in Redis by submit alone."),
        Setting(
            "--contact", \.contact, .text("url", rule: "is a URL or an e-mail address", where: isContact),
            "Contact in the User-Agent: a URL or an e-mail address."),
        Setting(
            "--max-per-host", \.maxPerHost, .count(0...Int.max), is: .live, usual: "6",
            "Transfers at once to one host, over all workers; 0 = no limit.",
            more: "Literal addresses opened by --allow-net are limited only if this option is given.",
            foreign: ["--split", "--max-connection-per-server", "--concurrent-requests-per-domain", "-x"]),
        Setting(
            "--rate-per-host", \.ratePerHost, .number(0.001...100_000), is: .live, usual: "no limit",
            "Requests per second to one host, over all workers: 20 or 0.5.",
            more: "Batches without a rate do not wait for it.",
            foreign: [
                "-w", "--wait", "--delay", "--sleep", "--download-delay", "--rate", "--qps", "--rps",
                "--requests-per-second",
            ]),
        Setting(
            "--tries", \.tries, .count(1...100), usual: "3", "Requests for a URL, 1 to 100.",
            foreign: ["-t", "--retry", "--retries", "--max-tries", "--retry-times"]),
        Setting(
            "--timeout", \.timeout, .time(times), usual: "15s", "Longest time without data.",
            foreign: ["-T", "--read-timeout", "--download-timeout"]),
        Setting("--connect-timeout", \.connectTimeout, .time(times), usual: "10s", "Longest time to connect."),
        Setting(
            "--max-time", \.maxTime, .time(0...86_400), usual: "60s below 64 KiB/s",
            "Longest time of a URL, with all tries; 0 = no limit.", foreign: ["-m", "--max-timeout"]),
        Setting(
            "--max-size", \.maxSize, .size(1...4 << 30), usual: "64MiB", "Largest image, up to 4GiB.",
            foreign: ["--max-filesize"]),
        Setting(
            "--robots", \.asksRobots, .flag, "Obey each site's robots.txt, Crawl-delay up to 60s.",
            foreign: ["--robotstxt", "--obey-robots", "--robotstxt-obey"]),
        Setting(
            "--ignore-robots-tag", \.respectsRobotsTag, .flag(false),
            "Take images with X-Robots-Tag: noai, noindex or the like.",
            more: "The tag is ignored for literal addresses opened by --allow-net."),
        Setting(
            "--own-host", \.ownHosts, .hosts,
            "A host you own, whose X-Robots-Tag is ignored: a name or *.domain. Repeatable."),
        Setting(
            "--allow-host", \.allowHosts, .hosts, "Request these hosts only: example.org, *.example.org. Repeatable."),
        Setting("--deny-host", \.denyHosts, .hosts, "Request nothing of a host or *.domain. Repeatable."),
        Setting(
            "--url-filter", \.urlFilters, .patterns, "Request only URLs that match. Repeatable: all have to."),
    ].section("Requests")
}

extension SettingKind where Value == [String] {
    private static let headerRule =
        "takes 'Name: value' or @FILE, but no header of the connection, such as Host or Content-Length"

    /// `Name: value` each.
    package static var headers: SettingKind {
        .texts("header", most: RequestSettings.maxHeaders, mostBytes: RequestSettings.mostHeaderBytes, rule: headerRule)
        {
            RequestSettings.isHeader($0) || $0.hasPrefix("@")
        }
    }

    /// Host names, or `*.domain`: neither a URL, nor with a port.
    package static var hosts: SettingKind {
        .texts("host", most: 1_000, rule: "takes a host name or *.domain") { text in
            let name = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
            return (try? RequestURL("http://\(name)/"))?.host == name.lowercased()
        }
    }

    package static var patterns: SettingKind {
        .texts("regex", most: 16) { pattern throws(WebImageError) in _ = try PatternFilter(pattern) }
    }
}
