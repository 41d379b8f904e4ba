internal import ArgumentParser
internal import FoundationEssentials
internal import Prefetch
internal import WebImage

/// How images are fetched: the same on `prefetch-worker` and on `run`, which hands them to its workers.
struct FetchOptions: ParsableArguments {
    @Option(name: .customLong("max-concurrent-downloads"), help: "Transfers in flight a worker.")
    var maxConcurrentDownloads = 32

    @Option(
        name: .customLong("allow-net"),
        help:
            "Open a private network, as 10.0.0.0/8 or 127.0.0.1:8080; may be repeated. PREFETCH_ALLOW_NET opens more. Ports of databases and other services stay closed unless they are named."
    )
    private var allowNet: [String] = []

    @Option(
        name: .customLong("deny-net"),
        help:
            "Close a network whatever else opens it, as 10.0.0.5 or 10.0.0.0/8:9090; may be repeated. PREFETCH_DENY_NET closes more."
    )
    private var denyNet: [String] = []

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: "A header of every request, 'Name: value', or @FILE with one a line; may be repeated.")
    var headers: [String] = []

    @Option(help: "The User-Agent of every request.")
    var userAgent: String?

    @Option(
        help:
            "Contact address in the User-Agent of every request, as https://example.org/bot or me@example.org; none by default."
    )
    var contact: String?

    @Option(
        help:
            "A proxy, as http://10.0.0.1:3128, or @FILE that has it; 'env' takes it from the environment; none by default."
    )
    var proxy: String?

    @Option(help: "HOST:PORT:ADDRESS, as curl --resolve.")
    var resolve: [String] = []

    @Option(help: "HOST:PORT:HOST:PORT, as curl --connect-to.")
    var connectTo: [String] = []

    @Option(name: .customLong("ca-file"), help: "Certificates to trust in place of the system's.", completion: .file())
    var caFile: String?

    @Option(help: "Time for a connection, as 500ms, 10s or 1m.")
    var connectTimeout = TimeSpan(seconds: 10)

    @Option(help: "Time without a byte.")
    var timeout = TimeSpan(seconds: 15)

    @Option(
        help:
            "Time a URL may spend with a connection, over all tries; 0 = no limit. (default: 60s for a URL slower than 64 KiB/s, else none)"
    )
    var maxTime: TimeSpan?

    @Option(help: "Requests for a URL before it ends as failed.")
    var tries = 3

    @Option(help: "Redirects followed.")
    var maxRedirects = 5

    @Option(help: "The largest image, up to 4GiB.")
    var maxSize = ByteSize(bytes: 64 << 20)

    @Option(
        help:
            "Memory that all decodes of a worker may use at one time, 1MiB to 1TiB. An image that would exceed it waits; one that needs more is decoded alone, up to 512MiB."
    )
    var maxDecodeMemory = ByteSize(bytes: 256 << 20)

    @Option(help: "Time until the jobs of a worker that gives no sign of life go to others.")
    var lease = TimeSpan(seconds: 15)

    @Option(help: "Time for transfers in flight after the first SIGTERM or Ctrl-C.")
    var drainTimeout = TimeSpan(seconds: 25)

    @Option(
        name: .customLong("inherited-settings"),
        help: ArgumentHelp("The descriptor with the headers and credentials of a run.", visibility: .private))
    var inheritedSettings: Int32?

    @OptionGroup(title: "Request options") var requests: RequestOptions
    @OptionGroup(title: "Politeness") var politeness: PolitenessOptions
    @OptionGroup(title: "Cache limits") var cacheLimits: CacheLimitOptions

    func validate() throws {
        guard (1...4096).contains(maxConcurrentDownloads) else {
            throw ValidationError("--max-concurrent-downloads is a number from 1 to 4096")
        }
        guard (1...100).contains(tries) else { throw ValidationError("--tries is a number from 1 to 100") }
        guard (0...50).contains(maxRedirects) else { throw ValidationError("--max-redirects is a number from 0 to 50") }
        guard userAgent == nil || contact == nil else {
            throw ValidationError("--contact is a part of the User-Agent that --user-agent replaces: give one of them")
        }
        if let contact {
            let isPlain = contact.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x28 && $0 != 0x29 }
            guard isPlain, contact.contains("@") || contact.hasPrefix("http://") || contact.hasPrefix("https://") else {
                throw ValidationError("--contact is a URL or an e-mail address, not '\(TerminalText.escaped(contact))'")
            }
        }
        guard maxSize.bytes <= 4 << 30 else { throw ValidationError("--max-size is at most 4GiB") }
        guard (1 << 20...1 << 40).contains(maxDecodeMemory.bytes) else {
            throw ValidationError("--max-decode-memory is a size from 1MiB to 1TiB")
        }
        guard lease.seconds >= 1 else { throw ValidationError("--lease is at least 1s") }
        // Not with the word itself: it may be a secret.
        for header in headers where !header.contains(":") && !header.hasPrefix("@") {
            throw ValidationError("--header wants 'Name: value', or @FILE")
        }
        for (option, texts) in [("--allow-net", allowNet), ("--deny-net", denyNet)] {
            for text in texts where CIDR(text) == nil {
                throw ValidationError("\(option) wants an address or a network such as 10.0.0.0/8, not '\(text)'")
            }
        }
    }

    /// How the cache is to be opened; see ``StorageOptions/prepare()``.
    func prepareCache() -> DiskCache.Configuration {
        var configuration = cacheLimits.prepare()
        configuration.maxUnprovedSize = maxSize.bytes
        return configuration
    }

    /// The same options as arguments for a worker, without what ``secrets()`` has.
    var arguments: [String] {
        var words = ["--max-concurrent-downloads", String(maxConcurrentDownloads)]
        for text in allowNet { words += ["--allow-net", text] }
        for text in denyNet { words += ["--deny-net", text] }
        for text in resolve { words += ["--resolve", text] }
        for text in connectTo { words += ["--connect-to", text] }
        if let userAgent { words += ["--user-agent", userAgent] }
        if let contact { words += ["--contact", contact] }
        if let caFile { words += ["--ca-file", caFile] }
        if let maxTime { words += ["--max-time", maxTime.argument] }
        words += [
            "--connect-timeout", connectTimeout.argument, "--timeout", timeout.argument, "--tries", String(tries),
            "--max-redirects", String(maxRedirects), "--max-size", maxSize.argument,
            "--max-decode-memory", maxDecodeMemory.argument, "--lease", lease.argument,
            "--drain-timeout", drainTimeout.argument,
        ]
        return words + requests.arguments + politeness.arguments + cacheLimits.arguments
    }
}

// MARK: - Downloads

extension FetchOptions {
    /// The downloader these options ask for.
    /// - Throws: `configuration` with the option that is wrong.
    func downloads(_ hosts: HostLimitOption) throws(PrefetchError) -> ImageDownloader.Configuration {
        let secrets = try secrets()
        var downloads = ImageDownloader.Configuration()
        downloads.maxConcurrentDownloads = maxConcurrentDownloads
        downloads.maxParkedDownloads = min(100_000, max(256, 8 * maxConcurrentDownloads))
        let maxPerHost = hosts.maxPerHost ?? HostLimitOption.usual
        downloads.maxConnectionsPerHost = maxPerHost > 0 ? maxPerHost : nil
        downloads.limitsOpenedAddresses = hosts.maxPerHost != nil
        downloads.hosts = politeness.policy
        downloads.asksRobots = politeness.robots
        downloads.respectsRobotsTag = politeness.respectsRobotsTag
        downloads.limitRate = politeness.limitRate?.bytes
        downloads.connectTimeout = connectTimeout.seconds
        downloads.downloadTimeout = timeout.seconds
        if let maxTime {
            downloads.maxTotalTime = maxTime.seconds > 0 ? maxTime.seconds : nil
            downloads.maxSlowTime = nil
        }
        downloads.maxAttempts = tries
        downloads.maxRedirects = maxRedirects
        downloads.maxBodyBytes = maxSize.bytes
        downloads.connectTo = connectTo
        downloads.resolve = resolve
        downloads.caFile = caFile
        downloads.addressPolicy = try addressPolicy()
        if let contact {
            downloads.setValue(WebImage.userAgent(contact: contact), forHTTPHeaderField: "User-Agent")
        }
        if let userAgent { downloads.setValue(userAgent, forHTTPHeaderField: "User-Agent") }
        for header in secrets.headers {
            let parts = header.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts[1].drop { $0 == " " }
            downloads.setValue(value.isEmpty ? nil : String(value), forHTTPHeaderField: String(parts[0]))
        }
        try requests.apply(to: &downloads, secrets)
        let environment = ProcessInfo.processInfo.environment
        func variable(_ name: String) -> String? {
            let value = environment[name] ?? environment[name.uppercased()]
            return value.flatMap { $0.isEmpty ? nil : $0 }
        }
        let inherited = variable("https_proxy") ?? variable("http_proxy") ?? variable("all_proxy")
        switch secrets.proxy {
        case "env": downloads.proxy = inherited
        case nil:
            if inherited != nil { Console.note("note: a proxy in the environment is not used; --proxy env uses it") }
        case let proxy?: downloads.proxy = proxy
        }
        do throws(WebImageError) { try downloads.validate() } catch {
            throw PrefetchError(.configuration, error.message, hint: "see --help")
        }
        return downloads
    }
}

// MARK: - Environment

extension FetchOptions {
    /// The networks that are open and those that are closed: of `--allow-net` and `--deny-net`, and of PREFETCH_ALLOW_NET and
    /// PREFETCH_DENY_NET, between commas or blanks, which a container or a service has where its network is set up.
    /// - Throws: `configuration` where a variable names something else.
    func addressPolicy(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(PrefetchError) -> AddressPolicy {
        AddressPolicy(
            allow: try Self.networks(allowNet, and: "PREFETCH_ALLOW_NET", environment),
            deny: try Self.networks(denyNet, and: "PREFETCH_DENY_NET", environment))
    }

    private static func networks(
        _ options: [String], and variable: String, _ environment: [String: String]
    ) throws(PrefetchError) -> [CIDR] {
        var networks = options.compactMap { CIDR($0) }
        for word in (environment[variable] ?? "").split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let network = CIDR(String(word)) else {
                throw PrefetchError(
                    .configuration, "\(variable) has '\(TerminalText.escaped(String(word)))', which is no network",
                    hint: "name addresses or networks such as 10.0.0.0/8, with commas between")
            }
            networks.append(network)
        }
        return networks
    }
}
