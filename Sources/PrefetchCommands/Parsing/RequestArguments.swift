internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// How the requests of a batch are made: the same on `run`, `submit` and `retry`. They are in the batch's record, and all workers keep to
/// them. An option that is not given is nil, so that `retry` changes what is given alone.
struct RequestArguments: ParsableArguments {
    @Option(help: .url("Contact in the User-Agent: a URL or an e-mail address."))
    var contact: String?

    @Option(
        name: .customLong("max-per-host"),
        help: ArgumentHelp(
            "Transfers at once to one host, over all workers; 0 = no limit. (default: 6)",
            discussion: "Literal addresses opened by --allow-net are limited only if this option is given.",
            valueName: "n"))
    var maxPerHost: Int?

    @Option(
        name: .customLong("rate-per-host"),
        help: ArgumentHelp(
            "Requests per second to one host, over all workers: 20 or 0.5. (default: no limit)",
            discussion:
                "Batches without a rate do not wait for it.",
            valueName: "n"))
    var rate: Double?

    @Option(help: .count("Requests for a URL, 1 to 100. (default: 3)"))
    var tries: Int?

    @Option(help: .time("Longest time without data. (default: 15s)"))
    var timeout: TimeSpan?

    @Option(help: .time("Longest time to connect. (default: 10s)"))
    var connectTimeout: TimeSpan?

    @Option(
        help: .time(
            "Longest time of a URL, with all tries; 0 = no limit. (default: 60s below 64 KiB/s)")
    )
    var maxTime: TimeSpan?

    @Option(help: .size("Largest image, up to 4GiB. (default: 64MiB)"))
    var maxSize: ByteSize?

    @Flag(help: "Obey each site's robots.txt, Crawl-delay up to 60s.")
    var robots = false

    @Flag(
        help: ArgumentHelp(
            "Take images with X-Robots-Tag: noai, noindex or the like.",
            discussion: "The tag is ignored for literal addresses opened by --allow-net."))
    var ignoreRobotsTag = false

    @Option(
        name: .customLong("own-host"),
        help: .value(
            "name",
            "A host you own, whose X-Robots-Tag is ignored: a name or *.domain. Repeatable."))
    var ownHosts: [String] = []

    func validate() throws {
        func check<Value: Comparable>(_ value: Value?, _ range: ClosedRange<Value>, _ rule: String) throws {
            if let value, !range.contains(value) { throw ValidationError(rule) }
        }
        try check(tries, RequestSettings.triesRange, "--tries is a number from 1 to 100")
        try check(maxSize?.bytes, RequestSettings.sizes, "--max-size is at most 4GiB")
        try check(maxPerHost, 0...Int.max, "--max-per-host is a number from 0")
        try check(rate, RequestSettings.rates, "--rate-per-host is a number from 0.001 to 100000")
        for (name, time) in [("--connect-timeout", connectTimeout), ("--timeout", timeout)] {
            try check(time?.seconds, RequestSettings.times, "\(name) is a time above 0, at most a day")
        }
        try check(maxTime?.seconds, 0...RequestSettings.times.upperBound, "--max-time is at most a day")
        if let contact, !RequestSettings.isContact(contact) {
            throw ValidationError("--contact is a URL or an e-mail address, not '\(TerminalText.escaped(contact))'")
        }
        if let wrong = ownHosts.first(where: { !Self.isHost($0) }) {
            throw ValidationError(
                "--own-host is a name as images.example.org, or *.example.org, not '\(TerminalText.escaped(wrong))'")
        }
        try check(ownHosts.count, 0...RequestSettings.maxOwnHosts, "--own-host can be given 1,000 times")
    }

    /// Whether the text is a host, or `*.` and a domain: neither a URL, nor with a port.
    static func isHost(_ text: String) -> Bool {
        let name = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
        return (try? RequestURL("http://\(name)/"))?.host == name.lowercased()
    }

    /// As the batch keeps them.
    var settings: RequestSettings {
        var settings = RequestSettings()
        settings.contact = contact
        settings.connectTimeout = connectTimeout?.seconds
        settings.timeout = timeout?.seconds
        settings.maxTime = maxTime?.seconds
        settings.tries = tries
        settings.maxSize = maxSize?.bytes
        settings.maxPerHost = maxPerHost
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
