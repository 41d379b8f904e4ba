package import Threading

extension ImageDownloader {
    /// Settings of a downloader. All durations are in seconds.
    public struct Configuration: Sendable {
        /// Maximum concurrent transfers, 1 to 100,000; default 6 (SDWebImage's). Those without a connection or an answer count, unless
        /// ``maxStalledDownloads`` says otherwise.
        public var maxConcurrentDownloads = 6
        /// Maximum number of stalled transfers, which got no byte for ``stalledAfter``, or less than ``lowSpeedLimit`` in small pieces, and do not
        /// count as concurrent; default 0: all count.
        /// Further ones keep their slot. A stalled transfer keeps its host's slot: the host sees no more connections than allowed.
        public var maxStalledDownloads = 0
        /// Maximum connections kept without a transfer for later requests to their hosts; default nil: a quarter of the limit of open files,
        /// at most 2,048. While there are few, those of all hosts are kept; beyond 64 and 4 for each concurrent transfer only those of hosts
        /// that other URLs wait for or that have sent bodies before. Idle for 118 s they are closed (curl's default).
        public var maxIdleConnections: Int?
        /// With TLS each takes some 30 KB.
        var idleConnections: Int { maxIdleConnections ?? min(2048, Descriptors.limit / 4) }
        /// Silence after which a transfer is stalled; default 1. A quarter while it is not connected; and before the response's first byte 4
        /// times as long as responses took to theirs of late, an eighth at least. A body in drips is stalled as soon, after a quarter at least.
        public var stalledAfter = 1.0
        /// Maximum concurrent transfers to one host; default nil (no limit). Applies to all processes together if they share hosts
        /// (``ImageDownloader/shareHosts(limitRate:)``).
        public var maxConnectionsPerHost: Int?
        /// Whether ``maxConnectionsPerHost`` also applies to literal addresses allowed by ``AddressPolicy/allow``; default true. Names are
        /// always limited.
        package var limitsOpenedAddresses = true
        /// Maximum concurrent transfers to one IP address and port, whatever the names of its hosts; default nil (no limit). Applies to all
        /// processes together as ``maxConnectionsPerHost`` does, and where the address is known before the transfer.
        public var maxConnectionsPerAddress: Int?
        /// Whether ``maxConnectionsPerAddress`` also applies to literal addresses allowed by ``AddressPolicy/allow``; default true.
        package var limitsTransfersToOpenedAddresses = true
        /// Host policy; default: no limits.
        public var hosts = HostPolicy()
        /// Whether robots.txt is respected (RFC 9309); default false. Disallowed URLs end as `refused`. It is read once per hour and site;
        /// a missing one allows everything, one that the server fails to deliver nothing. Its `Crawl-delay`, up to 60 s, is a rate of its host
        /// as ``HostPolicy/requestsPerSecond`` is.
        public var asksRobots = false
        /// Whether images with noai, noimageai, noindex, noimageindex, noml or none in `X-Robots-Tag` end as `refused`; default false. Not
        /// applied to ``ownHosts``, nor to literal addresses allowed by ``AddressPolicy/allow``.
        public var respectsRobotsTag = false
        /// Hosts whose owner downloads: `X-Robots-Tag` does not refuse their images. Names in lower case, or `*.domain` for all names below
        /// a domain. Default: none.
        public var ownHosts: [String] = []
        /// Maximum body bytes per second of all transfers together; default nil (no limit).
        public var limitRate: Int?
        /// Order in which waiting downloads start; default first in, first out.
        public var executionOrder = DownloadExecutionOrder.fifo
        /// Time limit until the request can be sent (DNS, connection, TLS); default 10.
        public var connectTimeout = 10.0
        /// Idle timeout of a try, also for the first byte; default 15. 0 means the default, as in SDWebImage.
        public var downloadTimeout = 15.0 {
            didSet { if downloadTimeout == 0 { downloadTimeout = 15 } }
        }
        /// Minimum bytes per second; slower transfers are aborted. Default 1,000; 0 means no limit.
        public var lowSpeedLimit = 1000
        /// How long a transfer may stay below ``lowSpeedLimit``; default 20.
        public var lowSpeedTime = 20.0
        /// Time limit of one try including redirects; default nil (no limit).
        public var maxTime: Double?
        /// Time limit of a URL while connected, over all tries; default nil (no limit). Waiting for a slot, a connection, a retry or
        /// ``limitRate`` does not count. It also ends the current try.
        public var maxTotalTime: Double?
        /// Like ``maxTotalTime``, for a URL that is slower than ``slowSpeed`` on average; default 60; nil: no limit.
        public var maxSlowTime: Double? = 60
        /// Bytes per second above which ``maxSlowTime`` does not apply; default 65,536: 64 MiB at 1 MB/s take 67 s.
        public var slowSpeed = 64 << 10
        /// Maximum tries for transient failures, including the first; default 3.
        public var maxTries = 3
        /// Failures that are retried; default all kinds of ``RetriedError``.
        public var retriedErrors = Set(RetriedError.allCases)
        /// Status codes retried in addition to 408, 425, 429 and 5xx; default none.
        public var retriedStatusCodes: Set<Int> = []
        /// Minimum size of an interrupted body to resume (Range, If-Range), given a strong ETag or a date; default 64 KiB; nil: never.
        public var resumeFrom: Int? = 64 << 10
        /// Base of the randomised exponential back-off between tries; default 0.5.
        public var retryBaseDelay = 0.5
        /// Maximum of this back-off; default 30.
        public var retryMaxDelay = 30.0
        /// Maximum `Retry-After` to honour; default 60. For longer ones the retry comes after this time.
        public var maxRetryAfter = 60.0
        /// Maximum redirects to follow; default 10.
        public var maxRedirects = 10
        /// Maximum body size in bytes, checked during the transfer; default 64 MiB.
        public var maxBodyBytes = 64 << 20
        /// Maximum bytes of all header lines of a response, including preceding 1xx responses; default 64 KiB.
        public var maxHeaderBytes = 64 << 10
        /// Maximum header lines of a response; default 200.
        public var maxHeaderLines = 200
        /// Headers sent with every request; default `User-Agent` and `Accept: image/*;q=0.8`.
        public var headers = [
            HTTPHeader("User-Agent", userAgent(contact: nil)),
            HTTPHeader("Accept", "image/*;q=0.8"),
        ]
        /// Accepted status codes; default nil (200 to 299). Redirects are followed regardless.
        public var acceptableStatusCodes: [ClosedRange<Int>]?
        /// Accepted media types, such as `image/png` or `image/*`; default nil (any: the bytes decide).
        public var acceptableContentTypes: [String]?
        /// Credentials for servers; the first match is used. Credentials in a URL take precedence.
        public var credentials: [Credential] = []
        /// PEM file of the client certificate; default nil.
        public var clientCertificateFile: String?
        /// File of the certificate's key; nil: in the certificate's file.
        public var clientKeyFile: String?
        /// Password of the key.
        public var clientKeyPassword: String?
        /// IP versions to connect with; default `any`.
        public var ipVersion = IPVersion.any
        /// Whether HTTP/2 is used if a server offers it over TLS, so that downloads share a connection; default false: HTTP/1.1 takes less
        /// time for images, because libcurl 7.88 wakes up twice as often for each of an HTTP/2 connection's streams.
        public var usesHTTP2 = false
        /// Minimum fraction of a body between two progress reports, 0 (every time) to 1; default 0.
        public var minimumProgressInterval = 0.0
        /// Changes the configured headers for a URL (`headersFilter`); default nil. Called on the downloader's thread, so it must be quick.
        public var headersFilter: (@Sendable (_ url: String, _ headers: [HTTPHeader]) -> [HTTPHeader])?
        /// Changes a URL's request, after ``headersFilter``; nil ends it with `invalidDownloadOperation`. On the downloader's thread.
        public var requestModifier: (@Sendable (DownloadRequest) -> DownloadRequest?)?
        /// Changes a response before it is evaluated; nil ends it with `invalidDownloadResponse`. On the downloader's thread.
        public var responseModifier: (@Sendable (DownloadResponse) -> DownloadResponse?)?
        /// URL of a proxy; default nil (none). With `socks5h://` the proxy resolves names, with `socks5://` they are resolved here. Proxy
        /// variables of the environment are ignored.
        public var proxy: String?
        /// Lines of curl's `--connect-to`, `HOST:PORT:HOST:PORT`. Their targets are allowed by the address policy.
        public var connectTo: [String] = []
        /// Lines of curl's `--resolve`, `HOST:PORT:ADDRESS`. Their targets are allowed by the address policy.
        public var resolve: [String] = []
        /// Resolvers that names are asked of, `ADDRESS` or `ADDRESS:PORT` with IPv6 in brackets; default none: those of resolv.conf(5).
        public var dnsServers: [String] = []
        /// Where resolvers are read if none is given, resolv.conf(5).
        package var resolverFile = "/etc/resolv.conf"
        /// Names and addresses that go before the resolver's, hosts(5).
        package var hostsFile = "/etc/hosts"
        /// File of certificate authorities that replaces the system's; default nil.
        public var caFile: String?
        /// Addresses that may be connected to; default: the public Internet.
        public var addressPolicy = AddressPolicy()
        /// Body bytes kept in memory; default 1 MiB. Larger bodies move to a file if ``openTemporaryFile`` is set.
        public var memoryLimit = 1 << 20
        /// Opens an unnamed file for a large body, which closes it; default nil (bodies stay in memory).
        package var openTemporaryFile: (@Sendable () throws(WebImageError) -> Int32)?
        /// Threads that create and write such files; default nil: one of the downloader's own.
        package var filePool: ThreadPool?
        package var fileCalls: FileCalls?
        /// Inspects the first bytes, repeatedly with at least twice as many, until it returns true; its error aborts the transfer. Called
        /// on the downloader's thread. Default nil.
        package var inspectHeader: (@Sendable (UnsafeRawBufferPointer) throws(WebImageError) -> ImageHeader?)?

        /// The IP versions to connect with.
        public enum IPVersion: String, Sendable, CaseIterable {
            /// Whichever connects first.
            case any
            /// IPv4 only.
            case v4
            /// IPv6 only.
            case v6
        }

        /// Filters that each URL has to pass before a request, also after a redirect; default: none.
        public var urlFilters: [any ImageURLFilter] = []
        /// The same of a worker, of which its batches know nothing.
        package var workerFilters: [any ImageURLFilter] = []

        /// Default settings.
        public init() {}

        /// Follows a version of SDWebImage: its number of tries, and its `Accept`.
        public mutating func follow(_ compatibility: Compatibility) {
            maxTries = compatibility.maxTries
            setValue(compatibility.accept, forHTTPHeaderField: "Accept")
        }

        /// Sets a header of every request; nil removes it.
        public mutating func setValue(_ value: String?, forHTTPHeaderField name: String) {
            headers.set(value, of: name)
        }

        /// The value of a header of every request.
        public func value(forHTTPHeaderField name: String) -> String? { headers.value(of: name) }

        /// Checks all ranges.
        /// - Throws: `invalidConfiguration` with the member and its range.
        public func validate() throws(WebImageError) {
            func check(_ holds: Bool, _ rule: String) throws(WebImageError) {
                guard holds else { throw WebImageError(.invalidConfiguration, rule) }
            }
            try check((1...100_000).contains(maxConcurrentDownloads), "maxConcurrentDownloads must be 1 to 100,000")
            try check((0...100_000).contains(maxStalledDownloads), "maxStalledDownloads must be 0 to 100,000")
            try check((0...100_000).contains(maxIdleConnections ?? 0), "maxIdleConnections must be 0 to 100,000")
            try check(maxConnectionsPerHost ?? 1 >= 1, "maxConnectionsPerHost must be at least 1")
            try check(maxConnectionsPerAddress ?? 1 >= 1, "maxConnectionsPerAddress must be at least 1")
            try hosts.validate()
            try check(limitRate ?? 1024 >= 1024, "limitRate must be at least 1,024 bytes a second")
            let positive = [
                ("stalledAfter", stalledAfter), ("connectTimeout", connectTimeout),
                ("downloadTimeout", downloadTimeout),
                ("lowSpeedTime", lowSpeedTime), ("maxTime", maxTime ?? 1),
                ("maxTotalTime", maxTotalTime ?? 1), ("maxSlowTime", maxSlowTime ?? 1),
            ]
            for (name, value) in positive {
                try check(value > 0 && value <= 86_400, "\(name) must be more than 0 and at most 86,400 seconds")
            }
            let pauses = [
                ("retryBaseDelay", retryBaseDelay), ("retryMaxDelay", retryMaxDelay), ("maxRetryAfter", maxRetryAfter),
            ]
            for (name, value) in pauses {
                try check(value >= 0 && value <= 86_400, "\(name) must be 0 to 86,400 seconds")
            }
            try check((1...1000).contains(maxTries), "maxTries must be 1 to 1,000")
            try check((0...100).contains(maxRedirects), "maxRedirects must be 0 to 100")
            let sizes = [
                ("maxBodyBytes", maxBodyBytes), ("maxHeaderBytes", maxHeaderBytes), ("maxHeaderLines", maxHeaderLines),
            ]
            for (name, value) in sizes { try check(value > 0, "\(name) must be more than 0") }
            try check(maxBodyBytes <= Plausible.largestImage, "maxBodyBytes must be at most 4 GiB")
            try check(lowSpeedLimit >= 0 && memoryLimit >= 0, "lowSpeedLimit and memoryLimit must not be negative")
            try check(slowSpeed >= 0, "slowSpeed must not be negative")
            try check(resumeFrom ?? 1 >= 1, "resumeFrom must be at least 1")
            try check((0...1).contains(minimumProgressInterval), "minimumProgressInterval must be 0 to 1")
            for codes in acceptableStatusCodes ?? [] {
                try check(codes.lowerBound >= 200, "acceptableStatusCodes must be at least 200")
            }
            if let proxy, let scheme = Self.scheme(of: proxy), !Self.proxySchemes.contains(scheme) {
                try check(
                    false,
                    "a proxy has the scheme \(Self.proxySchemes.map(\.text).sorted().joined(separator: ", ")), not \(scheme)"
                )
            }
            for credential in credentials {
                try check(credential.isValid, "a credential is empty or has a character that cannot be sent")
            }
            for server in dnsServers {
                try check(
                    DNSServer(server) != nil, "dnsServers must be addresses such as 192.0.2.1 or [2001:db8::1]:53")
            }
            for header in headers {
                if let objection = header.objection { try check(false, objection) }
            }
        }

        /// The schemes of proxies; without one it is http.
        private static let proxySchemes: Set<ByteText> = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

        private static func scheme(of url: String) -> String? {
            let scheme = Substring(url.utf8.prefix { $0 != UInt8(ascii: ":") })
            let rest = url.utf8.dropFirst(scheme.utf8.count)
            return rest.starts(with: "://".utf8) ? String(scheme).asciiLowercased : nil
        }

        var retryPolicy: RetryPolicy {
            RetryPolicy(
                maxTries: maxTries, baseDelay: retryBaseDelay, maxDelay: retryMaxDelay,
                maxRetryAfter: maxRetryAfter, errors: retriedErrors, statusCodes: retriedStatusCodes)
        }

        /// Where other threads write large bodies; nil: nowhere.
        var spool: BodySpool.Place? {
            openTemporaryFile.map { open in
                let pool = filePool ?? ThreadPool(threads: 1, name: "spool")
                return BodySpool.Place(open: open, pool: pool, calls: fileCalls)
            }
        }

        /// The name of this program in robots.txt and X-Robots-Tag: the first word of its User-Agent.
        var productToken: String {
            let agent = headers.first { $0.isNamed("user-agent") }?.value ?? ""
            return String(agent.prefix { $0.isLetter || $0 == "-" || $0 == "_" })
        }

        func bandwidth(shared rate: Int?) -> BandwidthLimit? {
            guard limitRate != nil || rate != nil else { return nil }
            return BandwidthLimit(
                bytesPerSecond: limitRate, shared: rate.map { BandwidthLease(bytesPerSecond: $0) })
        }

        /// Settings of the resolver.
        var names: NameResolver.Settings {
            let families: [AddressFamily] =
                switch ipVersion {
                case .any: AddressFamily.allCases
                case .v4: [.v4]
                case .v6: [.v6]
                }
            return NameResolver.Settings(
                servers: dnsServers.compactMap { DNSServer($0)?.text }, resolverFile: resolverFile, families: families,
                waitLimit: hosts.waitLimit, hostsFile: hostsFile)
        }

        /// Merges the configured headers with a download's own, which take precedence.
        func headers(with own: [HTTPHeader]) -> [HTTPHeader] {
            return headers.filter { header in !own.contains { $0.isNamed(header.name) } } + own
        }

        /// Interval of transfer checks: at least eight per shortest limit.
        var checkInterval: Double {
            let shortest = min(
                stalledAfter, downloadTimeout, lowSpeedTime, maxTime ?? .infinity, maxTotalTime ?? .infinity,
                maxSlowTime ?? .infinity, connectTimeout)
            return max(0.002, min(0.25, shortest / 8))
        }
    }
}
