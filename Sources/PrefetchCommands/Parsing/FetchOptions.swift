public import ArgumentParser
internal import FoundationEssentials
internal import Prefetch
public import WebImage

/// A command with the options of a worker, in groups as those of ``BatchOptionGroups``.
protocol FetchOptionGroups {
    var transfers: TransferOptions { get }
    var network: NetworkOptions { get }
    var credentials: CredentialOptions { get }
    var cacheLimits: CacheLimitOptions { get }
    var readOnly: ReadOnlyCacheOptions { get }
}

extension FetchOptionGroups {
    var fetch: FetchOptions {
        FetchOptions(
            transfers: transfers, network: network, credentials: credentials,
            cacheLimits: cacheLimits, readOnly: readOnly)
    }
}

/// How a worker fetches, whatever its batches ask: the same on `prefetch-worker` and on `run`, which hands them to its workers.
struct FetchOptions {
    let transfers: TransferOptions
    let network: NetworkOptions
    let credentials: CredentialOptions
    let cacheLimits: CacheLimitOptions
    let readOnly: ReadOnlyCacheOptions

    /// What they come to, with the files of the `@FILE` forms read: once, so that a pipe will do.
    /// - Throws: `configuration` where a file cannot be read or used.
    func settings() throws(PrefetchError) -> FetchSettings {
        var settings = FetchSettings()
        transfers.apply(to: &settings)
        try network.apply(to: &settings)
        try credentials.apply(to: &settings)
        cacheLimits.apply(to: &settings)
        settings.readOnlyCaches = readOnly.directories
        return settings
    }
}

/// What a worker does at one time.
struct TransferOptions: ParsableArguments {
    @Option(
        name: .customLong("max-concurrent-downloads"),
        help: ArgumentHelp(
            "Transfers a worker runs at once, 1 to 4096; auto: it finds the number. (default: auto)",
            discussion: "A number is a maximum.",
            valueName: "n|auto"))
    var maxConcurrentDownloads: ConcurrentDownloads?

    @Option(
        help: .file("Append each transfer to this file, as JSON lines."),
        completion: .file())
    var transferLog: String?

    func validate() throws {
        try maxConcurrentDownloads?.check()
    }

    fileprivate func apply(to settings: inout FetchSettings) {
        settings.maxConcurrentDownloads = maxConcurrentDownloads ?? settings.maxConcurrentDownloads
        settings.transferLog = transferLog
    }
}

/// What only `prefetch-worker` is told: workers of a run have the defaults.
struct ProcessOptions: ParsableArguments {
    @Option(help: "Which waiting transfer of a worker starts next: fifo or lifo.")
    var downloadOrder = DownloadExecutionOrder.fifo

    @Option(
        help: ArgumentHelp(
            "Memory for all decodes of a worker at one time, 1MiB to 1TiB.",
            discussion: "An image that would exceed it waits; one that needs more alone ends as tooLarge.",
            valueName: "size"))
    var maxDecodeMemory = ByteSize(bytes: 256 << 20)

    @Option(help: .time("Time after the last heartbeat until the jobs of a worker go to others; at least 1s."))
    var lease = TimeSpan(seconds: 15)

    @Option(help: .time("Time for transfers to finish after the first SIGTERM or Ctrl-C."))
    var drainTimeout = TimeSpan(seconds: 25)

    func validate() throws {
        guard (1 << 20...1 << 40).contains(maxDecodeMemory.bytes) else {
            throw ValidationError("--max-decode-memory is a size from 1MiB to 1TiB")
        }
        guard lease.seconds >= 1 else { throw ValidationError("--lease is at least 1s") }
    }

    func apply(to settings: inout FetchSettings) {
        settings.order = downloadOrder.rawValue
        settings.maxDecodeMemory = maxDecodeMemory.bytes
        settings.lease = lease.seconds
        settings.drainTimeout = drainTimeout.seconds
    }
}

/// What a worker may connect to, and how.
struct NetworkOptions: ParsableArguments {
    @Option(
        name: .customLong("allow-net"),
        help: ArgumentHelp(
            "Allow a private network: 10.0.0.0/8 or 127.0.0.1:8080. Repeatable; adds to PREFETCH_ALLOW_NET.",
            discussion: "Ports of databases and the like have to be named.",
            valueName: "net"))
    var allowNet: [String] = []

    @Option(
        name: .customLong("deny-net"),
        help: .value(
            "net",
            "Deny a network even if it is allowed. Repeatable; adds to PREFETCH_DENY_NET.")
    )
    var denyNet: [String] = []

    @Option(
        name: .customLong("allow-host"),
        help: .value("host", "Request these hosts only: example.org, *.example.org. Repeatable."))
    var allowHosts: [String] = []

    @Option(
        name: .customLong("deny-host"),
        help: .value("host", "Request nothing of a host or *.domain. Repeatable."))
    var denyHosts: [String] = []

    @Option(
        name: .customLong("url-filter"),
        help: .value("regex", "Request only URLs that match. Repeatable: all have to."))
    var urlFilters: [String] = []

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: .value("header", "Header of every request, 'Name: value', or @FILE with one per line. Repeatable."))
    var headers: [String] = []

    @Option(
        help: .value(
            "rule", "Header for one host, 'HOST=Name: value', or @FILE; an empty value removes it. Repeatable."))
    var headerRule: [String] = []

    @Option(
        help: .url(
            "Proxy, such as http://10.0.0.1:3128, or @FILE with it; 'env' uses http_proxy and the like. (default: none)"
        ))
    var proxy: String?

    @Option(help: .value("host:port:host:port", "Connect elsewhere, as curl --connect-to. Repeatable."))
    var connectTo: [String] = []

    @Option(
        name: .customLong("dns-servers"),
        help: .value(
            "address,…",
            "Resolvers: 192.0.2.1 or [2001:db8::1]:5353. (default: those of /etc/resolv.conf)"))
    var dnsServers: String?

    @Option(
        name: .customLong("ca-file"), help: .file("Certificate authorities to trust (PEM)."),
        completion: .file())
    var caFile: String?

    @Option(name: .customLong("ip"), help: .value("version", "Use one version of IP only: 4 or 6. (default: both)"))
    var ipVersion: ImageDownloader.Configuration.IPVersion?

    @Flag(name: .customLong("http2"), help: "Use HTTP/2 where it is offered.")
    var http2 = false

    @Option(
        name: .customLong("limit-rate"),
        help: .size("Bytes of images per second, of a worker or of all workers of a run. (default: no limit)"))
    var limitRate: ByteSize?

    func validate() throws {
        if let limitRate, limitRate.bytes < 1024 { throw ValidationError("--limit-rate is at least 1K") }
        // Not with the word itself: it may be a secret.
        for header in headers where !Self.isHeader(header) && !header.hasPrefix("@") {
            throw ValidationError(
                "--header takes 'Name: value' or @FILE, but no header of the connection, such as Host or Content-Length"
            )
        }
        for (option, texts) in [("--allow-net", allowNet), ("--deny-net", denyNet)] {
            for text in texts where CIDR(text) == nil {
                throw ValidationError("\(option) takes an address or a network such as 10.0.0.0/8, not '\(text)'")
            }
        }
        for (option, hosts) in [("--allow-host", allowHosts), ("--deny-host", denyHosts)] {
            for host in hosts where !RequestArguments.isHost(host) {
                throw ValidationError("\(option) takes a host name or *.domain, not '\(host)'")
            }
        }
        for pattern in urlFilters where (try? PatternFilter(pattern)) == nil {
            throw ValidationError("--url-filter takes a regular expression, not '\(pattern)'")
        }
        for server in dnsServers.map(Self.servers) ?? [] where DNSServer(server) == nil {
            throw ValidationError(
                "--dns-servers takes addresses such as 192.0.2.1 or [2001:db8::1]:53, with commas between, not '\(server)'"
            )
        }
        for rule in headerRule where HeaderRule(rule) == nil && !rule.hasPrefix("@") {
            throw ValidationError(
                "--header-rule takes 'HOST=Name: value' or @FILE, but no header of the connection, such as Host")
        }
    }

    private static func isHeader(_ text: String) -> Bool { RequestSettings.header(text)?.isOfConnection == false }

    private static func servers(_ text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    fileprivate func apply(to settings: inout FetchSettings) throws(PrefetchError) {
        settings.allowNet = allowNet
        settings.denyNet = denyNet
        settings.allowHosts = allowHosts
        settings.denyHosts = denyHosts
        settings.urlFilters = urlFilters
        settings.headers = try OptionFile.lines(headers, "--header", wants: "Name: value", where: Self.isHeader)
        settings.headerRules = try OptionFile.lines(headerRule, "--header-rule", wants: "HOST=Name: value") {
            HeaderRule($0) != nil
        }
        settings.proxy = try proxy.map(OptionFile.line)
        settings.connectTo = connectTo
        settings.dnsServers = dnsServers.map(Self.servers) ?? []
        settings.caFile = caFile
        settings.ipVersion = (ipVersion ?? .any).rawValue
        settings.usesHTTP2 = http2
        settings.limitRate = limitRate?.bytes
    }
}

/// How a worker authenticates itself to servers.
struct CredentialOptions: ParsableArguments {
    @Option(help: .file("A netrc file with names and passwords by host."), completion: .file())
    var netrc: String?

    @Option(help: .value("name:password", "Name and password for every host of the list, or @FILE."))
    var user: String?

    @Option(help: .value("token", "Bearer token for every host of the list, or @FILE."))
    var bearer: String?

    @Option(help: .file("Client certificate (PEM)."), completion: .file())
    var cert: String?

    @Option(help: .file("Key of the client certificate (PEM)."), completion: .file())
    var key: String?

    func validate() throws {
        if user != nil && bearer != nil { throw ValidationError("--user and --bearer contradict each other") }
        if key != nil && cert == nil { throw ValidationError("--key needs --cert") }
    }

    fileprivate func apply(to settings: inout FetchSettings) throws(PrefetchError) {
        settings.netrc = try netrc.map(OptionFile.text)
        settings.user = try user.map(OptionFile.line)
        settings.bearer = try bearer.map(OptionFile.line)
        settings.certificateFile = cert
        settings.keyFile = key
    }
}

/// `--ip 4`, `--ip 6`.
extension ImageDownloader.Configuration.IPVersion: ExpressibleByArgument {
    /// The version of a number.
    public init?(argument: String) {
        switch argument {
        case "4": self = .v4
        case "6": self = .v6
        default: return nil
        }
    }

    /// Those that can be given.
    public static var allValueStrings: [String] { ["4", "6"] }
}

/// The files that options name.
enum OptionFile {
    /// Reads the lines of an option that is given several times; each is a line itself or `@FILE`, a file of them.
    /// * `isLine`: whether a line can be used.
    /// - Throws: `configuration` with the file, and the number of the line that cannot be used, but not its text.
    static func lines(
        _ words: [String], _ option: String, wants form: String, where isLine: (String) -> Bool
    ) throws(PrefetchError) -> [String] {
        var all: [String] = []
        for word in words {
            guard word.hasPrefix("@") else {
                all.append(word)
                continue
            }
            let file = String(word.dropFirst())
            let lines = try text(of: file).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            for (index, line) in lines.enumerated() where !line.allSatisfy(\.isWhitespace) {
                guard isLine(String(line)) else {
                    throw PrefetchError(
                        .configuration, "line \(index + 1) of \(file) is not '\(form)'",
                        hint: "\(option) @FILE has one '\(form)' per line")
                }
                all.append(String(line))
            }
        }
        return all
    }

    /// The text itself, or the first line of the file that `@FILE` names.
    static func line(_ text: String) throws(PrefetchError) -> String {
        guard text.hasPrefix("@") else { return text }
        return String(try Self.text(of: String(text.dropFirst())).prefix { !$0.isNewline })
    }

    /// The whole of a file.
    static func text(of file: String) throws(PrefetchError) -> String {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw PrefetchError(
                .configuration, "cannot read \(file)", hint: "give a file of text that this user may read")
        }
        return text
    }
}

extension DownloadExecutionOrder: ExpressibleByArgument {}

extension ConcurrentDownloads: ExpressibleByArgument {
    /// `auto` or a number; ``check()`` has its range.
    public init?(argument: String) { self.init(argument) }

    func check() throws {
        let range = QueueControl.concurrencyRange
        if let count, !range.contains(count) {
            throw ValidationError(
                "--max-concurrent-downloads is auto, or a number from \(range.lowerBound) to \(range.upperBound), not \(count)"
            )
        }
    }
}
