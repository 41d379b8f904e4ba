public import ArgumentParser
internal import FoundationEssentials
internal import Prefetch
public import WebImage

/// How a worker fetches, whatever its batches ask: the same on `prefetch-worker` and on `run`, which hands them to its workers.
struct FetchOptions: ParsableArguments {
    @Option(name: .customLong("max-concurrent-downloads"), help: "Transfers in flight a worker, 1 to 4096.")
    var maxConcurrentDownloads = 32

    @Option(
        name: .customLong("allow-net"),
        help:
            "Open a private network, as 10.0.0.0/8 or 127.0.0.1:8080; may be repeated. PREFETCH_ALLOW_NET opens more. Ports of databases and other services stay closed unless they are named."
    )
    var allowNet: [String] = []

    @Option(
        name: .customLong("deny-net"),
        help:
            "Close a network whatever else opens it, as 10.0.0.5 or 10.0.0.0/8:9090; may be repeated. PREFETCH_DENY_NET closes more."
    )
    var denyNet: [String] = []

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: "A header of every request, 'Name: value', or @FILE with one a line; may be repeated.")
    var headers: [String] = []

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

    @Option(
        help:
            "Memory that all decodes of a worker may use at one time, 1MiB to 1TiB. An image that would exceed it waits; one that needs more is decoded alone, up to 512MiB."
    )
    var maxDecodeMemory = ByteSize(bytes: 256 << 20)

    @Option(help: "Time until the jobs of a worker without a heartbeat go to others.")
    var lease = TimeSpan(seconds: 15)

    @Option(help: "Time for transfers in flight after the first SIGTERM or Ctrl-C.")
    var drainTimeout = TimeSpan(seconds: 25)

    @Option(
        name: .customLong("inherited-settings"),
        help: ArgumentHelp("The descriptor with the settings of a run.", visibility: .private))
    var inheritedSettings: Int32?

    @OptionGroup(title: "Servers") var servers: ServerOptions
    @OptionGroup(title: "Politeness") var politeness: PolitenessOptions
    @OptionGroup(title: "Cache limits") var cacheLimits: CacheLimitOptions

    func validate() throws {
        guard (1...4096).contains(maxConcurrentDownloads) else {
            throw ValidationError("--max-concurrent-downloads is a number from 1 to 4096")
        }
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

    /// What they come to, with the files of the `@FILE` forms read: once, so that a pipe will do. In a worker of a `run`, what that has.
    /// - Throws: `configuration` where a file cannot be read or used.
    func settings() throws(PrefetchError) -> FetchSettings {
        if let inheritedSettings { return try FetchSettings(inherited: inheritedSettings) }
        var settings = FetchSettings()
        settings.maxConcurrentDownloads = maxConcurrentDownloads
        settings.allowNet = allowNet
        settings.denyNet = denyNet
        settings.headers = try OptionFile.lines(headers, "--header", wants: "Name: value") { $0.contains(":") }
        settings.proxy = try proxy.map(OptionFile.line)
        settings.resolve = resolve
        settings.connectTo = connectTo
        settings.caFile = caFile
        settings.maxDecodeMemory = maxDecodeMemory.bytes
        settings.lease = lease.seconds
        settings.drainTimeout = drainTimeout.seconds
        try servers.apply(to: &settings)
        politeness.apply(to: &settings)
        cacheLimits.apply(to: &settings)
        return settings
    }
}

/// Who a worker is to servers, and how it speaks to them.
struct ServerOptions: ParsableArguments {
    @Option(help: "A netrc file with names and passwords by host.", completion: .file())
    var netrc: String?

    @Option(help: "NAME:PASSWORD for the servers, or @FILE that has it.")
    var user: String?

    @Option(help: "A token for the servers, or @FILE that has it.")
    var bearer: String?

    @Option(help: "How names and passwords are told: basic, digest.")
    var auth = Credential.Scheme.basic

    @Option(help: "A host --user or --bearer is for; may be repeated; every host by default.")
    var authHost: [String] = []

    @Option(help: "A file with this client's certificate (PEM).", completion: .file())
    var cert: String?

    @Option(help: "A file with the certificate's key.", completion: .file())
    var key: String?

    @Flag(name: [.customShort("4"), .long], help: "IPv4 addresses alone.")
    var ipv4 = false

    @Flag(name: [.customShort("6"), .long], help: "IPv6 addresses alone.")
    var ipv6 = false

    @Flag(name: .customLong("http1"), help: "No HTTP/2.")
    var http1 = false

    @Option(help: "Which waiting download of a worker is next: fifo, lifo.")
    var downloadOrder = DownloadExecutionOrder.fifo

    @Option(
        help:
            "A header for one host, 'HOST=Name: value', or @FILE with one a line; an empty value removes it; may be repeated."
    )
    var headerRule: [String] = []

    @Option(
        help: "A file for what happens to each transfer and where its time went, one JSON object a line.",
        completion: .file())
    var transferLog: String?

    func validate() throws {
        guard auth != .bearer else { throw ValidationError("--auth is basic or digest; a token is --bearer") }
        if user != nil && bearer != nil { throw ValidationError("--user and --bearer contradict each other") }
        if !authHost.isEmpty && user == nil && bearer == nil {
            throw ValidationError("--auth-host says whom --user or --bearer is for")
        }
        if key != nil && cert == nil { throw ValidationError("--key is the key of --cert") }
        if ipv4 && ipv6 { throw ValidationError("--ipv4 and --ipv6 contradict each other") }
        for rule in headerRule where HeaderRule(rule) == nil && !rule.hasPrefix("@") {
            throw ValidationError("--header-rule wants 'HOST=Name: value', or @FILE")
        }
    }

    fileprivate func apply(to settings: inout FetchSettings) throws(PrefetchError) {
        settings.netrc = try netrc.map(OptionFile.text)
        settings.user = try user.map(OptionFile.line)
        settings.bearer = try bearer.map(OptionFile.line)
        settings.auth = auth.rawValue
        settings.authHosts = authHost
        settings.certificateFile = cert
        settings.keyFile = key
        settings.ipVersion = (ipv4 ? .v4 : ipv6 ? .v6 : ImageDownloader.Configuration.IPVersion.any).rawValue
        settings.usesHTTP2 = !http1
        settings.order = downloadOrder.rawValue
        settings.headerRules = try OptionFile.lines(headerRule, "--header-rule", wants: "HOST=Name: value") {
            HeaderRule($0) != nil
        }
        settings.transferLog = transferLog
    }
}

/// How a worker treats hosts that fail, and its bandwidth.
struct PolitenessOptions: ParsableArguments {
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

    @Option(
        name: .customLong("limit-rate"),
        help: "Bytes of images a second, as 10MB: of a worker, or of all workers of a run; no limit by default.")
    var limitRate: ByteSize?

    func validate() throws {
        if let limitRate, limitRate.bytes < 1024 { throw ValidationError("--limit-rate is at least 1K") }
        guard failures >= 0 else { throw ValidationError("--host-failures is a number from 0 on") }
        guard patience.seconds <= 86_400 else { throw ValidationError("--host-patience is at most a day") }
        for group in groups
        where group.isEmpty || group.contains("/") || group.contains(":") || group.hasPrefix(".") {
            throw ValidationError("--host-group wants a domain such as example.org, not '\(group)'")
        }
    }

    fileprivate func apply(to settings: inout FetchSettings) {
        settings.hostGroups = groups.map { $0.lowercased() }
        settings.hostFailures = failures
        settings.hostPatience = patience.seconds
        settings.backsOff = !noBackOff
        settings.limitRate = limitRate?.bytes
    }
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
                        .configuration, "line \(index + 1) of \(file) is no \(form)",
                        hint: "\(option) @FILE wants one '\(form)' a line")
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

extension Credential.Scheme: ExpressibleByArgument {}
extension DownloadExecutionOrder: ExpressibleByArgument {}
