internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// How the requests of a batch are made: the same on `run`, `submit` and `retry`. They are in the batch's record, and all workers keep to
/// them. An option that is not given is nil, so that `retry` changes what is given alone.
struct RequestArguments: ParsableArguments {
    @Option(help: "The User-Agent of every request.")
    var userAgent: String?

    @Option(help: "Contact address in the User-Agent of every request, as https://example.org/bot or me@example.org.")
    var contact: String?

    @Option(help: "Time for a connection, as 500ms, 10s or 1m. (default: 10s)")
    var connectTimeout: TimeSpan?

    @Option(help: "Fail a request that receives no data for this long. (default: 15s)")
    var timeout: TimeSpan?

    @Option(
        help:
            "Time a URL may spend with a connection, over all tries; 0 = no limit. (default: 60s for a URL slower than 64 KiB/s, else none)"
    )
    var maxTime: TimeSpan?

    @Option(help: "Time one try may take, redirects included. (default: no limit)")
    var maxTryTime: TimeSpan?

    @Option(help: "Bytes a second under which a transfer ends; 0 = no limit. (default: 1000)")
    var lowSpeedLimit: Int?

    @Option(help: "Abort after the transfer stays below --low-speed-limit for this long. (default: 20s)")
    var lowSpeedTime: TimeSpan?

    @Option(help: "Requests for a URL before it ends as failed, 1 to 100. (default: 3)")
    var tries: Int?

    @Option(
        help:
            "What is tried again: timeout, dns, connect, truncated, status, and status codes, with commas; or none. (default: all five)"
    )
    var retryOn: String?

    @Option(
        help:
            "The longest first pause between tries, which doubles with each; a random part of it is waited. (default: 500ms)"
    )
    var retryDelay: TimeSpan?

    @Option(help: "The longest Retry-After that is waited for. (default: 1m)")
    var maxRetryAfter: TimeSpan?

    @Flag(help: "Begin large images anew where their transfer broke off.")
    var noResume = false

    @Option(help: "Redirects followed, 0 to 50. (default: 5)")
    var maxRedirects: Int?

    @Option(help: "The largest image, up to 4GiB. (default: 64MiB)")
    var maxSize: ByteSize?

    @Option(name: .customLong("accept-status"), help: "Status codes that are taken, as 200-299,404. (default: 200-299)")
    var acceptStatus: String?

    @Option(
        name: .customLong("accept-type"), help: "Media types that are taken, as image/*; with commas. (default: any)")
    var acceptType: String?

    @Option(
        name: .customLong("max-per-host"),
        help: ArgumentHelp(
            "Transfers at once to one host, all workers of the queue together; 0 = no limit. (default: 6)",
            discussion: "Literal addresses that --allow-net opens are limited only if this option is given."))
    var maxPerHost: Int?

    @Option(
        name: .customLong("rate-per-host"),
        help: "Requests a second to one host over all workers of the queue, as 20 or 0.5. (default: no limit)")
    var rate: Double?

    @Flag(help: "Read each site's robots.txt first; what it forbids ends as refused.")
    var robots = false

    @Flag(
        name: .customLong("respect-x-robots-tag"),
        help: "Images whose X-Robots-Tag says noai, noimageai, noindex, noimageindex, noml or none end as refused.")
    var respectsRobotsTag = false

    func validate() throws {
        func check<Value: Comparable>(_ value: Value?, _ range: ClosedRange<Value>, _ rule: String) throws {
            if let value, !range.contains(value) { throw ValidationError(rule) }
        }
        try check(tries, RequestSettings.triesRange, "--tries is a number from 1 to 100")
        try check(maxRedirects, RequestSettings.redirectsRange, "--max-redirects is a number from 0 to 50")
        try check(maxSize?.bytes, RequestSettings.sizes, "--max-size is at most 4GiB")
        try check(lowSpeedLimit, 0...Int.max, "--low-speed-limit is a number from 0 on")
        try check(maxPerHost, 0...Int.max, "--max-per-host is a number from 0 on")
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
        if let acceptStatus, RequestSettings.statusCodes(Self.parts(acceptStatus)) == nil {
            throw ValidationError("--accept-status is status codes from 200 to 599, as 200-299,404")
        }
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
        settings.ratePerHost = rate
        settings.asksRobots = robots ? true : nil
        settings.respectsRobotsTag = respectsRobotsTag ? true : nil
        return settings
    }
}

/// Headers that are in the batch's record: of `submit`, whose workers are elsewhere. Those of a `run` stay out of its Redis.
struct BatchHeaders: ParsableArguments {
    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp(
            "A header of every request of the batch, 'Name: value'; an empty value removes it; may be repeated.",
            discussion: "It is in Redis with the batch: secrets are options of the workers (--bearer, --user, --netrc)."
        ))
    var headers: [String] = []

    func validate() throws {
        // Not with the word itself: it may be a secret.
        for header in headers where RequestSettings.header(header)?.isValid != true {
            throw ValidationError("--header wants 'Name: value'")
        }
    }
}
