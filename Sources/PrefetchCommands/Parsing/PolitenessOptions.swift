internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// How hosts are treated: the same on `prefetch-worker` and on `run`, which hands them to its workers.
struct PolitenessOptions: ParsableArguments {
    @Option(
        name: .customLong("rate-per-host"),
        help: "Requests a second to one host over all workers of the queue, as 20 or 0.5; no limit by default.")
    var rate: Double?

    @Option(
        name: .customLong("host-group"),
        help: "A domain that counts as one host with all names below it, as example.org; may be repeated.")
    var groups: [String] = []

    @Option(
        name: .customLong("host-failures"),
        help: "Requests in a row without an answer after which a host is left alone for a while; 0 = never.")
    var failures = 10

    @Option(
        name: .customLong("host-patience"),
        help: "Time the URLs of a host that is left alone wait until they end as failed.")
    var patience = TimeSpan(seconds: 30)

    @Flag(
        name: .customLong("no-back-off"),
        help: "A 429, 503 or Retry-After delays its URL alone, not all requests to the host.")
    var noBackOff = false

    @Flag(help: "Read each site's robots.txt first; what it forbids ends as refused.")
    var robots = false

    @Flag(
        name: .customLong("respect-x-robots-tag"),
        help: "Images whose X-Robots-Tag says noai, noimageai, noindex, noimageindex, noml or none end as refused.")
    var respectsRobotsTag = false

    @Option(
        name: .customLong("limit-rate"),
        help: "Bytes of images a second, as 10MB: of a worker, or of all workers of a run; no limit by default.")
    var limitRate: ByteSize?

    func validate() throws {
        if let limitRate, limitRate.bytes < 1024 { throw ValidationError("--limit-rate is at least 1K") }

        if let rate, !(rate >= 0.001 && rate <= 100_000) {
            throw ValidationError("--rate-per-host is a number from 0.001 to 100000")
        }
        guard failures >= 0 else { throw ValidationError("--host-failures is a number from 0 on") }
        guard patience.seconds <= 86_400 else { throw ValidationError("--host-patience is at most a day") }
        for group in groups
        where group.isEmpty || group.contains("/") || group.contains(":") || group.hasPrefix(".") {
            throw ValidationError("--host-group wants a domain such as example.org, not '\(group)'")
        }
    }

    /// The same for a downloader.
    var policy: HostPolicy {
        var policy = HostPolicy()
        policy.requestsPerSecond = rate
        policy.groups = groups.map { $0.lowercased() }
        policy.failuresInARow = failures > 0 ? failures : nil
        policy.patience = patience.seconds
        policy.backsOff = !noBackOff
        return policy
    }

    /// The same options as arguments for a worker.
    var arguments: [String] {
        var words: [String] = []
        if let rate { words += ["--rate-per-host", String(rate)] }
        for group in groups { words += ["--host-group", group] }
        words += ["--host-failures", String(failures), "--host-patience", patience.argument]
        if noBackOff { words.append("--no-back-off") }
        if robots { words.append("--robots") }
        if respectsRobotsTag { words.append("--respect-x-robots-tag") }
        if let limitRate { words += ["--limit-rate", limitRate.argument] }
        return words
    }
}

/// The limit of transfers to one host, which has one meaning for a batch (`run`, `submit`, `retry`) and for a worker.
struct HostLimitOption: ParsableArguments {
    /// Where nobody has said another number.
    static let usual = 6

    @Option(
        name: .customLong("max-per-host"),
        help: ArgumentHelp(
            "Transfers at once to one host, all workers of the queue together; 0 = no limit. (default: \(usual))",
            discussion: """
                A batch's limit overrides its workers'. Literal addresses that --allow-net opens are limited only if this \
                option is given.
                """))
    var maxPerHost: Int?

    func validate() throws {
        if let maxPerHost, maxPerHost < 0 { throw ValidationError("--max-per-host is a number from 0 on") }
    }
}
