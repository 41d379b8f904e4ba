internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// How the requests of a batch are made: the same on `run`, `submit` and `retry`. They are in the batch's record, and all workers keep to
/// them. An option that is not given is nil, so that `retry` changes what is given alone.
struct RequestArguments: ParsableArguments {
    @Option(help: .value("text", "User-Agent of requests. (default: prefetch/VERSION)"))
    var userAgent: String?

    @Option(help: .url("Contact address in the User-Agent: https://example.org/bot or me@example.org."))
    var contact: String?

    @Option(
        name: .customLong("max-per-host"),
        help: ArgumentHelp(
            "Transfers at once to one host, over all workers of the queue; 0 = no limit. (default: 6)",
            discussion: "Literal addresses opened by --allow-net are limited only if this option is given.",
            valueName: "n"))
    var maxPerHost: Int?

    @Option(
        help: ArgumentHelp(
            "Transfers at once to one IP address and port, whatever its names, over all workers; 0 = no limit. (default: 64)",
            discussion: "Literal addresses opened by --allow-net are limited only if this option is given.",
            valueName: "n"))
    var maxPerAddress: Int?

    @Option(
        name: .customLong("rate-per-host"),
        help: ArgumentHelp(
            "Requests per second to one host, over all workers: 20 or 0.5. (default: no limit)",
            discussion:
                "It holds for this batch and others with the same rate; batches without one do not wait for it.",
            valueName: "n"))
    var rate: Double?

    @Option(help: .count("Requests for a URL before it ends as failed, 1 to 100. (default: 3)"))
    var tries: Int?

    @Option(help: .time("Fail a request that receives no data for this long. (default: 15s)"))
    var timeout: TimeSpan?

    @Option(help: .time("Fail a request that is not connected after this long. (default: 10s)"))
    var connectTimeout: TimeSpan?

    @Option(
        help: .time(
            "Time a URL may take over all tries; 0 = no limit. (default: 60s if it is slower than 64 KiB/s, else none)")
    )
    var maxTime: TimeSpan?

    @Option(help: .time("Time one try may take, redirects included. (default: no limit)"))
    var maxTryTime: TimeSpan?

    @Option(
        help: .value(
            "bytes", "End a transfer that is slower than this many bytes per second; 0 = never. (default: 1000)"))
    var lowSpeedLimit: Int?

    @Option(help: .time("How long a transfer may stay below --low-speed-limit. (default: 20s)"))
    var lowSpeedTime: TimeSpan?

    @Option(
        help: .list(
            "Errors that are retried: timeout, dns, connect, truncated, status or status codes, separated by commas; or none. (default: all five)"
        ))
    var retryOn: String?

    @Option(
        help: .time(
            "Upper bound of the first back-off, which doubles with each try; the actual pause is random. (default: 500ms)"
        ))
    var retryDelay: TimeSpan?

    @Option(help: .time("Longest Retry-After to wait for; a longer one fails the URL. (default: 1m)"))
    var maxRetryAfter: TimeSpan?

    @Flag(help: "Start a broken large transfer from the first byte instead of resuming it.")
    var noResume = false

    @Option(help: .count("Redirects to follow, 0 to 50. (default: 10)"))
    var maxRedirects: Int?

    @Option(help: .size("Largest image, up to 4GiB. (default: 64MiB)"))
    var maxSize: ByteSize?

    @Option(
        name: .customLong("accept-status"),
        help: .list("Status codes whose body is accepted: 200-299,404. (default: 200-299)"))
    var acceptStatus: String?

    @Option(
        name: .customLong("accept-type"), help: .list("Media types that are accepted: image/*. (default: any)"))
    var acceptType: String?

    @Flag(help: "Obey each site's robots.txt: disallowed URLs end as refused, and Crawl-delay (up to 60s) is waited.")
    var robots = false

    @Flag(
        help: ArgumentHelp(
            "Take images whose X-Robots-Tag is noai, noimageai, noindex, noimageindex, noml or none.",
            discussion: "The tag is ignored for literal addresses opened by --allow-net."))
    var ignoreRobotsTag = false

    @Option(
        name: .customLong("own-host"),
        help: .value(
            "name",
            "A host you own; its X-Robots-Tag is ignored: a name or *.domain. Repeatable. (default: none)"))
    var ownHosts: [String] = []

    func validate() throws {
        func check<Value: Comparable>(_ value: Value?, _ range: ClosedRange<Value>, _ rule: String) throws {
            if let value, !range.contains(value) { throw ValidationError(rule) }
        }
        try check(tries, RequestSettings.triesRange, "--tries is a number from 1 to 100")
        try check(maxRedirects, RequestSettings.redirectsRange, "--max-redirects is a number from 0 to 50")
        try check(maxSize?.bytes, RequestSettings.sizes, "--max-size is at most 4GiB")
        try check(lowSpeedLimit, 0...Int.max, "--low-speed-limit is a number from 0")
        try check(maxPerHost, 0...Int.max, "--max-per-host is a number from 0")
        try check(maxPerAddress, 0...Int.max, "--max-per-address is a number from 0")
        try check(rate, RequestSettings.rates, "--rate-per-host is a number from 0.001 to 100000")
        let times = [
            ("--connect-timeout", connectTimeout), ("--timeout", timeout), ("--max-try-time", maxTryTime),
            ("--low-speed-time", lowSpeedTime),
        ]
        for (name, time) in times {
            try check(time?.seconds, RequestSettings.times, "\(name) is a time above 0, at most a day")
        }
        for (name, time) in [
            ("--max-time", maxTime), ("--retry-delay", retryDelay), ("--max-retry-after", maxRetryAfter),
        ] {
            try check(time?.seconds, 0...RequestSettings.times.upperBound, "\(name) is at most a day")
        }
        guard userAgent == nil || contact == nil else {
            throw ValidationError("--contact is a part of the User-Agent that --user-agent replaces: give one of them")
        }
        if let contact, !RequestSettings.isContact(contact) {
            throw ValidationError("--contact is a URL or an e-mail address, not '\(TerminalText.escaped(contact))'")
        }
        if let userAgent, !HTTPHeader("User-Agent", userAgent).isValid {
            throw ValidationError("--user-agent has a character that cannot be sent")
        }
        if let retryOn, RequestSettings.retried(Self.retried(retryOn)) == nil {
            let names = RetriedError.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError(
                "--retry-on is none, or some of \(names) and status codes, not '\(TerminalText.escaped(retryOn))'")
        }
        if let wrong = ownHosts.first(where: { !Self.isHost($0) }) {
            throw ValidationError(
                "--own-host is a name as images.example.org, or *.example.org, not '\(TerminalText.escaped(wrong))'")
        }
        try check(ownHosts.count, 0...RequestSettings.maxOwnHosts, "--own-host can be given 1,000 times")
        if let acceptStatus, RequestSettings.statusCodes(Self.parts(acceptStatus)) == nil {
            throw ValidationError("--accept-status is status codes from 200 to 599, as 200-299,404")
        }
    }

    /// Whether the text is a host, or `*.` and a domain: neither a URL, nor with a port.
    static func isHost(_ text: String) -> Bool {
        let name = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
        return (try? RequestURL("http://\(name)/"))?.host == name.lowercased()
    }

    private static func parts(_ text: String) -> [String] { text.split(separator: ",").map { String($0) } }

    private static func retried(_ text: String) -> [String] { parts(text).filter { $0 != "none" } }

    /// As the batch keeps them.
    var settings: RequestSettings {
        var settings = RequestSettings()
        settings.userAgent = userAgent
        settings.contact = contact
        settings.connectTimeout = connectTimeout?.seconds
        settings.timeout = timeout?.seconds
        settings.maxTime = maxTime?.seconds
        settings.maxTryTime = maxTryTime?.seconds
        settings.lowSpeedLimit = lowSpeedLimit
        settings.lowSpeedTime = lowSpeedTime?.seconds
        settings.tries = tries
        settings.retryOn = retryOn.map(Self.retried)
        settings.retryDelay = retryDelay?.seconds
        settings.maxRetryAfter = maxRetryAfter?.seconds
        settings.resumes = noResume ? false : nil
        settings.maxRedirects = maxRedirects
        settings.maxSize = maxSize?.bytes
        settings.acceptStatus = acceptStatus.map(Self.parts)
        settings.acceptTypes = acceptType.map(Self.parts)
        settings.maxPerHost = maxPerHost
        settings.maxPerAddress = maxPerAddress
        settings.ratePerHost = rate
        settings.asksRobots = robots ? true : nil
        settings.respectsRobotsTag = ignoreRobotsTag ? false : nil
        settings.ownHosts = ownHosts.isEmpty ? nil : ownHosts.map { $0.lowercased() }
        return settings
    }
}

/// Headers that are in the batch's record: of `submit`, whose workers are elsewhere. Those of a `run` stay out of its Redis.
struct BatchHeaders: ParsableArguments {
    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp(
            "Header of every request of the batch, 'Name: value'; an empty value removes it. Repeatable.",
            discussion: "It is stored in Redis; give secrets to the workers instead (--bearer, --user, --netrc).",
            valueName: "header"))
    var headers: [String] = []

    func validate() throws {
        // Not with the word itself: it may be a secret.
        for header in headers where RequestSettings.header(header)?.isValid != true {
            throw ValidationError(
                "--header takes 'Name: value', but no header of the connection, such as Host or Content-Length")
        }
    }
}
