internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import WebImage

/// How a worker works, whatever its batches ask: what its command line says, or the run that has started it (``RunWorker``).
struct FetchSettings: Sendable, Equatable {
    /// The least check of an image.
    var minimumLevel = ValidationLevel.none
    /// Bytes, and pixels of images that are checked row by row, of the largest image.
    var maxImageBytes = 4 << 30, maxPixels = ImageCoder.Limits().maxPixels
    /// Bytes a second: of this worker, and of all of the queue.
    var limitRate: Int?, limitRateOfQueue: Int?
    /// Transfers in flight.
    var maxConcurrentDownloads = ConcurrentDownloads.auto
    var order = DownloadExecutionOrder.fifo
    /// Bytes of all decodes.
    var maxDecodeMemory = 256 << 20
    /// Whether images are decoded in processes of their own.
    var sandbox = SandboxMode.auto
    /// Seconds.
    var lease = 15.0, drainTimeout = 25.0
    var transferLog: String?
    var logFormat = LogFormat.text
    /// Networks, hosts and ports, as the options have them.
    var allowNet: [String] = [], denyNet: [String] = [], connectTo: [String] = []
    /// Host names or `*.domain`, and regular expressions.
    var allowHosts: [String] = [], denyHosts: [String] = [], urlFilters: [String] = []
    /// Addresses of resolvers; none: the system's.
    var dnsServers: [String] = []
    /// `Name: value` each; `HOST=Name: value` each.
    var headers: [String] = [], headerRules: [String] = []
    /// A URL, or `env`.
    var proxy: String?
    var caFile: String?
    var ipVersion = ImageDownloader.Configuration.IPVersion.any
    var usesHTTP2 = false
    /// A netrc file, or its text once it is read.
    var netrc: String?
    /// `NAME:PASSWORD`, or a token.
    var user: String?, bearer: String?
    var certificateFile: String?, keyFile: String?
    /// Seconds, bytes, and bytes that stay free.
    var cacheMaxAge: Double?, cacheMaxSize: Int?, minFree: Int?
    /// Bits as of chmod(2).
    var cacheMode: mode_t?
    var readOnlyCaches: [String] = []

    /// The defaults.
    init() {}

    /// With the files that `@FILE` and `--netrc` name, and with the environment; each file is read once, so it may be a pipe.
    /// - Throws: `configuration` where one cannot be read or used.
    func complete(
        _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(PrefetchError) -> FetchSettings {
        var all = self
        all.headers = try OptionFile.lines(headers, "--header", wants: "Name: value", where: RequestSettings.isHeader)
        all.headerRules = try OptionFile.lines(headerRules, "--header-rule", wants: "HOST=Name: value") {
            HeaderRule($0) != nil
        }
        all.netrc = try netrc.map(OptionFile.text)
        all.user = try user.map(OptionFile.line)
        all.bearer = try bearer.map(OptionFile.line)
        all.proxy = try proxy.map(OptionFile.line)
        for setting in Self.variables {
            let words = (environment[setting.about.variable] ?? "").split { $0 == "," || $0.isWhitespace }.map(
                String.init)
            let given = setting.words(self)
            guard !words.isEmpty, given == nil || setting.about.form.isRepeated else { continue }
            do throws(WebImageError) {
                try setting.read((given ?? []) + words, into: &all, subject: setting.about.variable)
            } catch {
                throw PrefetchError(
                    .configuration, TerminalText.escaped(error.message), hint: "its option is \(setting.about.usage)")
            }
        }
        return all
    }

    /// The limits of an image. What one may take of memory is what all may take.
    var imageLimits: ImageCoder.Limits {
        var limits = ImageCoder.Limits()
        limits.maxMemory = maxDecodeMemory
        limits.maxPixels = maxPixels
        return limits
    }

    /// The processes that decode; nil: none.
    /// - Throws: `configuration` if there have to be some, and cannot be.
    func decoders() throws(PrefetchError) -> CodecSandbox? {
        switch sandbox {
        case .off: return nil
        case .auto: return .shared
        case .on:
            guard CodecSandbox.isInstalled else {
                throw PrefetchError(
                    .configuration,
                    "--sandbox on needs \(TerminalText.escaped(CodecSandbox.program)), which is not there",
                    hint: "install it there: scripts/install and the packages do; or --sandbox auto")
            }
            let decoders = CodecSandbox(isRequired: true)
            guard case .useless(let reason, let remedy) = decoders.condition() else { return decoders }
            throw PrefetchError(
                .configuration, "--sandbox on: \(TerminalText.escaped(reason))", hint: "\(remedy); or --sandbox auto")
        }
    }

    /// The part of one worker of a run, whose workers have the bandwidth together.
    func share(of workers: Int) -> FetchSettings {
        var share = self
        share.limitRate = limitRate.map { max(1024, $0 / workers) }
        return share
    }

    // MARK: The cache

    /// How the cache is to be opened. Sets the umask of this process, of which all that it makes has its mode.
    func prepareCache() -> DiskCache.Configuration {
        if let cacheMode { umask(0o777 & ~cacheMode) }
        var configuration = DiskCache.Configuration()
        configuration.readOnlyDirectories = readOnlyCaches
        return configuration
    }

    /// What the cache may hold.
    var cacheLimits: CacheLimits { CacheLimits(maxAge: cacheMaxAge, maxSize: cacheMaxSize, minFree: minFree) }

    /// ``readOnlyCaches`` as they have to be typed behind another command.
    var readOnlyWords: String { readOnlyCaches.map { " --read-only-cache \(Shell.quoted(Shell.path($0)))" }.joined() }

    // MARK: Downloads

    /// Transfers at once to one host where its batch says no other number.
    private static let usualPerHost = 6
    /// The same to one address: ten thousand names of one small server are not ten thousand hosts.
    private static let usualPerAddress = 64
    /// Requests without a response after which a host is in back-off.
    private static let failuresInARow = 10
    /// Stalled transfers that do not count with `auto`: eight for each of those that it needs on most networks.
    private static let mostStalled = 2048

    /// The downloader they ask for; batches vary it.
    /// - Throws: `configuration` with what is wrong.
    func downloads(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(PrefetchError) -> ImageDownloader.Configuration {
        var downloads = ImageDownloader.Configuration()
        downloads.maxConcurrentDownloads = maxConcurrentDownloads.initial
        // A worker may be told to find its number later.
        downloads.maxStalledDownloads = Self.mostStalled
        downloads.maxConnectionsPerHost = Self.usualPerHost
        downloads.limitsOpenedAddresses = false
        downloads.maxConnectionsPerAddress = Self.usualPerAddress
        downloads.limitsTransfersToOpenedAddresses = false
        downloads.hosts.failuresInARow = Self.failuresInARow
        downloads.hosts.shortensLastWait = true
        downloads.hosts.backsOff = true
        downloads.limitRate = limitRate
        downloads.connectTo = connectTo
        downloads.dnsServers = dnsServers
        downloads.caFile = caFile
        downloads.addressPolicy = addressPolicy
        downloads.urlFilters = HostFilter.filters(allowHosts, denyHosts, urlFilters)
        for header in headers.compactMap(RequestSettings.header) {
            downloads.setValue(header.value.isEmpty ? nil : header.value, forHTTPHeaderField: header.name)
        }
        let rules = headerRules.compactMap { HeaderRule($0) }
        if !rules.isEmpty {
            downloads.headersFilter = { url, headers in rules.reduce(into: headers) { $1.apply(to: &$0, of: url) } }
        }
        downloads.credentials = credentials
        downloads.clientCertificateFile = certificateFile
        downloads.clientKeyFile = keyFile
        downloads.ipVersion = ipVersion
        downloads.usesHTTP2 = usesHTTP2
        downloads.executionOrder = order
        func variable(_ name: String) -> String? {
            let value = environment[name] ?? environment[name.uppercased()]
            return value.flatMap { $0.isEmpty ? nil : $0 }
        }
        let inherited = variable("https_proxy") ?? variable("http_proxy") ?? variable("all_proxy")
        switch proxy {
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

    private var credentials: [Credential] {
        var credentials = netrc.map { Netrc.credentials(in: $0) } ?? []
        if let user {
            let parts = user.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let password = parts.count > 1 ? String(parts[1]) : ""
            credentials.append(Credential(user: String(parts[0]), password: password))
        }
        if let bearer { credentials.append(Credential(bearer: bearer)) }
        return credentials
    }

    /// The networks that are open and those that are closed.
    var addressPolicy: AddressPolicy {
        AddressPolicy(allow: allowNet.compactMap { CIDR($0) }, deny: denyNet.compactMap { CIDR($0) })
    }
}

// MARK: - The rows

extension FetchSettings: SettingRecord {
    static let settings = work + network + credentialRows + cache
    /// Those that a variable of the environment has, too.
    static let variables = settings.filter { $0.about.traits.contains(.variable) }

    private static let work: [Setting<FetchSettings>] = [
        Setting(
            "--max-concurrent-downloads", \.maxConcurrentDownloads,
            SettingKind(
                "n|auto", rule: "is auto, or a number from 1 to 4096", { QueueControl.concurrency($0) }, { "\($0)" }),
            "Transfers a worker runs at once, 1 to 4096; auto: it finds the number.", more: "A number is a maximum.",
            foreign: [
                "-j", "-Z", "--parallel", "--parallel-max", "--jobs", "--concurrency", "--concurrent", "--threads",
                "--thread-count", "--max-threads", "--max-concurrent", "--concurrent-requests",
                "--max-concurrent-requests",
            ]),
        Setting(
            "--transfer-log", \.transferLog, .text("file"), is: .file,
            "Append each transfer to this file, as JSON lines."),
        Setting(
            "--validate", \.minimumLevel, .choice("level") { $0.name }, is: .process,
            "Minimum check of an image, whatever its batch requests: none, header, structure or decode."),
        Setting(
            "--max-size", \.maxImageBytes, .size(1...4 << 30), is: .process,
            "Largest image, whatever its batch asks, up to 4GiB."),
        Setting(
            "--max-pixels", \.maxPixels, .pixels(ImageRules.pixels), is: .process,
            "Largest image in pixels, whatever its batch asks: 800M. AVIF and lossless WebP: 100M at most."),
        Setting(
            "--download-order", \.order, .choice("order"), is: .process,
            "Which waiting transfer of a worker starts next: fifo or lifo."),
        Setting(
            "--max-decode-memory", \.maxDecodeMemory, .size(1 << 20...1 << 40), is: .process,
            "Memory for all decodes of a worker at one time, 1MiB to 1TiB.",
            more: "An image that would exceed it waits; one that needs more alone ends as tooLarge."),
        Setting(
            "--sandbox", \.sandbox, .choice("mode"), is: .variable,
            "Decode in processes without files and network: auto, on or off; or PREFETCH_SANDBOX.",
            more: "auto: wherever the kernel can; doctor says so."),
        Setting(
            "--lease", \.lease, .time(1...3_153_600_000), is: .process,
            "Time after the last heartbeat until the jobs of a worker go to others; at least 1s."),
        Setting(
            "--drain-timeout", \.drainTimeout, .time(0...3_153_600_000), is: .process,
            "Time for transfers to finish after the first SIGTERM or Ctrl-C."),
        Setting(
            "--log-format", \.logFormat, .choice("format"), is: [.process, .variable],
            "Log on standard error: text, json or auto; or PREFETCH_LOG_FORMAT."),
    ].section("Worker")

    private static let network: [Setting<FetchSettings>] = [
        Setting(
            "--allow-net", \.allowNet, .networks, is: .variable,
            "Allow a private network: 10.0.0.0/8 or 127.0.0.1:8080. Repeatable; adds to PREFETCH_ALLOW_NET.",
            more: "Ports of databases and the like have to be named."),
        Setting(
            "--deny-net", \.denyNet, .networks, is: .variable,
            "Deny a network even if it is allowed. Repeatable; adds to PREFETCH_DENY_NET."),
        Setting(
            "--allow-host", \.allowHosts, .hosts, is: .process,
            "Request these hosts only: example.org, *.example.org. Repeatable."),
        Setting(
            "--deny-host", \.denyHosts, .hosts, is: .process, "Request nothing of a host or *.domain. Repeatable."),
        Setting(
            "--url-filter", \.urlFilters, .patterns, is: .process,
            "Request only URLs that match. Repeatable: all have to."),
        Setting(
            "-H, --header", \.headers, .headers, is: [.process, .secret],
            "Header of every request, 'Name: value', or @FILE with one per line. Repeatable."),
        Setting(
            "--header-rule", \.headerRules,
            .texts(
                "rule", rule: "takes 'HOST=Name: value' or @FILE, but no header of the connection, such as Host"
            ) { HeaderRule($0) != nil || $0.hasPrefix("@") }, is: .secret,
            "Header for one host, 'HOST=Name: value', or @FILE; an empty value removes it. Repeatable."),
        Setting(
            "--proxy", \.proxy, .text("url"), is: .secret, usual: "none",
            "Proxy, such as http://10.0.0.1:3128, or @FILE with it; 'env' uses http_proxy and the like.",
            foreign: ["-x", "--all-proxy", "--http-proxy", "--https-proxy", "--socks5"]),
        Setting(
            "--connect-to", \.connectTo, .texts("host:port:host:port"),
            "Connect elsewhere, as curl --connect-to. Repeatable.", foreign: ["--resolve"]),
        Setting(
            "--dns-servers", \.dnsServers,
            .texts(
                "address,…", separator: ",",
                rule: "takes addresses such as 192.0.2.1 or [2001:db8::1]:53, with commas between"
            ) { DNSServer($0) != nil }, usual: "those of /etc/resolv.conf",
            "Resolvers: 192.0.2.1 or [2001:db8::1]:5353."),
        Setting(
            "--ca-file", \.caFile, .text("file"), is: .file, "Certificate authorities to trust (PEM).",
            foreign: ["--cacert", "--ca-certificate", "--capath", "--ca-directory"]),
        Setting(
            "--ip", \.ipVersion, .version, usual: "both", "Use one version of IP only: 4 or 6.",
            foreign: ["-4", "--ipv4", "--inet4-only", "-6", "--ipv6", "--inet6-only"]),
        Setting(
            "--http2", \.usesHTTP2, .flag, "Use HTTP/2 where it is offered."),
        Setting(
            "--limit-rate", \.limitRate, .size(1024...Int.max), usual: "no limit",
            "Bytes of images per second, of a worker or of all workers of a run.",
            foreign: ["--bwlimit", "--max-download-limit", "--max-overall-download-limit", "--bandwidth"]),
        Setting(
            "--limit-rate-of-queue", \.limitRateOfQueue, .size(1024...Int.max), is: .process, usual: "no limit",
            "Bytes of images per second over all workers of the queue: 10MB."),
    ].section("Network")

    private static let credentialRows: [Setting<FetchSettings>] = [
        Setting(
            "--netrc", \.netrc, .text("file"), is: [.file, .secret], "A netrc file with names and passwords by host."),
        Setting(
            "--user", \.user, .text("name:password"), is: .secret,
            "Name and password for EVERY host, or @FILE.",
            foreign: ["-u", "--http-user"]),
        Setting(
            "--bearer", \.bearer, .text("token"), is: .secret,
            "Bearer token for EVERY host, or @FILE. For one host: --netrc has passwords, --header-rule tokens.",
            foreign: ["--oauth2-bearer", "--token"]),
        Setting(
            "--cert", \.certificateFile, .text("file"), is: .file, "Client certificate (PEM).",
            foreign: ["-E", "--certificate"]),
        Setting(
            "--key", \.keyFile, .text("file"), is: .file, "Key of the client certificate (PEM).",
            foreign: ["--private-key"]
        ),
    ].section("Credentials")

    private static let cache: [Setting<FetchSettings>] = [
        Setting("--cache-max-age", \.cacheMaxAge, .age, usual: "never", "Remove images older than this: 7d."),
        Setting(
            "--cache-max-size", \.cacheMaxSize, .size(1...Int.max), usual: "no limit",
            "Disk space for images; the oldest are removed: 10GiB.", foreign: ["-Q", "--quota"]),
        Setting(
            "--min-free", \.minFree, .size(1...Int.max), usual: "never",
            "Pause while the disk has less free space: 1GiB."),
        Setting(
            "--read-only-cache", \.readOnlyCaches, .texts("dir", rule: "needs a folder") { !$0.isEmpty }, is: .file,
            "Cache, or folder of SDWebImage's, to look up as well; it is never changed. Repeatable."),
        Setting(
            "--cache-mode", \.cacheMode, .mode, is: .process, usual: "the umask",
            "Permissions of new files and folders, octal: 0770."),
    ].section("Cache limits")

    /// Why its settings contradict each other; nil if they do not.
    func contradiction(_ given: Set<String>) -> String? {
        if user != nil && bearer != nil { return "--user and --bearer contradict each other" }
        return keyFile != nil && certificateFile == nil ? "--key needs --cert" : nil
    }
}

extension SettingKind where Value == [String] {
    fileprivate static var networks: SettingKind {
        .texts("net", rule: "takes an address or a network such as 192.0.2.0/24") { CIDR($0) != nil }
    }
}

extension SettingKind where Value == mode_t {
    /// The permissions of folders in octal digits, `0770`; files have no right to be executed, and those of images none to be written.
    fileprivate static var mode: SettingKind {
        SettingKind("mode") { word in
            // A cache without its owner's permissions is useless to the user who creates it.
            guard (3...4).contains(word.count), let bits = mode_t(word, radix: 8), bits <= 0o777, bits & 0o700 == 0o700
            else { return nil }
            return bits
        } _: {
            "0" + String($0, radix: 8)
        }
    }
}

extension SettingKind where Value == ImageDownloader.Configuration.IPVersion {
    fileprivate static var version: SettingKind {
        SettingKind(
            "version", values: ["4", "6"], rule: "is 4 or 6", { ["4": .v4, "6": .v6][$0] },
            { String($0.rawValue.dropFirst()) })
    }
}

/// `HOST=Name: value`: a header of the requests for one host.
struct HeaderRule: Sendable, Equatable {
    let host: String
    let name: String
    /// nil removes it.
    let value: String?

    init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, let header = RequestSettings.header(String(parts[1])),
            !header.name.isEmpty, !header.isOfConnection
        else { return nil }
        host = parts[0].asciiLowercased
        name = header.name
        value = header.value.isEmpty ? nil : header.value
    }

    func apply(to headers: inout [HTTPHeader], of url: String) {
        guard let request = try? RequestURL(url), request.host.hasBytes(of: host) else { return }
        headers.removeAll { $0.isNamed(name) }
        if let value { headers.append(HTTPHeader(name, value)) }
    }
}
