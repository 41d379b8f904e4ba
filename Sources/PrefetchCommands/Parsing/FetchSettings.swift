internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import WebImage

/// How a worker fetches: what its command line says (``FetchOptions``), or the run that has started it (``RunWorker``).
struct FetchSettings: Codable, Sendable, Equatable {
    /// Transfers in flight.
    var maxConcurrentDownloads = ConcurrentDownloads.auto
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
    /// Bytes.
    var maxDecodeMemory = 256 << 20
    /// Of images that are checked row by row.
    var maxPixels = Self.usualPixels
    /// Seconds.
    var lease = 15.0, drainTimeout = 25.0
    /// The text of a netrc file.
    var netrc: String?
    /// `NAME:PASSWORD`, or a token.
    var user: String?, bearer: String?
    var certificateFile: String?, keyFile: String?
    var ipVersion = ImageDownloader.Configuration.IPVersion.any.rawValue
    var usesHTTP2 = false
    var order = DownloadExecutionOrder.fifo.rawValue
    var transferLog: String?
    /// Bytes a second.
    var limitRate: Int?
    /// Seconds, bytes, and bytes that stay free.
    var cacheMaxAge: Double?, cacheMaxSize: Int?, minFree: Int?
    /// Bits as of chmod(2).
    var cacheMode: UInt32?
    var readOnlyCaches: [String] = []

    /// The most pixels of an image unless somebody asks for more.
    static let usualPixels = ImageCoder.Limits().maxPixels

    /// The defaults.
    init() {}

    /// The limits of an image. What one may take of memory is what all may take.
    var imageLimits: ImageCoder.Limits {
        var limits = ImageCoder.Limits()
        limits.maxMemory = maxDecodeMemory
        limits.maxPixels = maxPixels
        return limits
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
        if let cacheMode { umask(0o777 & ~mode_t(cacheMode)) }
        var configuration = DiskCache.Configuration()
        configuration.readOnlyDirectories = readOnlyCaches
        return configuration
    }

    /// What the cache may hold.
    var cacheLimits: CacheLimits { CacheLimits(maxAge: cacheMaxAge, maxSize: cacheMaxSize, minFree: minFree) }

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
        downloads.maxParkedDownloads = Self.mostStalled
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
        downloads.addressPolicy = try addressPolicy(environment: environment)
        downloads.urlFilters = filters
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
        downloads.ipVersion = ImageDownloader.Configuration.IPVersion(rawValue: ipVersion) ?? .any
        downloads.usesHTTP2 = usesHTTP2
        downloads.executionOrder = DownloadExecutionOrder(rawValue: order) ?? .fifo
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

    private var filters: [any ImageURLFilter] {
        let hosts = HostFilter(allowed: HostPatterns(allowHosts), denied: HostPatterns(denyHosts))
        let patterns = urlFilters.compactMap { try? PatternFilter($0) }
        return hosts == HostFilter() ? patterns : [hosts] + patterns
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

    /// The networks that are open and those that are closed: of the options, and of PREFETCH_ALLOW_NET and PREFETCH_DENY_NET, between
    /// commas or blanks, which a container or a service has where its network is set up.
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
                    .configuration, "\(variable) has '\(TerminalText.escaped(String(word)))', which is not a network",
                    hint: "name addresses or networks such as 10.0.0.0/8, with commas between")
            }
            networks.append(network)
        }
        return networks
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
