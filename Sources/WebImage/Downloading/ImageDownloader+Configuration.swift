package import Threading

extension ImageDownloader {
    /// How a downloader works. All durations are seconds.
    public struct Configuration: Sendable {
        /// Transfers at once, 6 by default (SDWebImage's), 1 to 100,000.
        public var maxConcurrentDownloads = 6
        /// Transfers that are alive but got no byte for ``parkAfter``, and so do not count as concurrent, 64 by default. Further
        /// ones keep their slot. A parked transfer keeps its host's slot: the host sees no more connections than allowed.
        public var maxParkedDownloads = 64
        /// Silence after which a transfer is parked, 1 by default; a quarter of that while it has no connection.
        public var parkAfter = 1.0
        /// Transfers at once to one host, nil (no limit) by default. Where several processes share their hosts
        /// (``ImageDownloader/shareHosts(limitRate:)``), that of all of them together.
        public var maxConnectionsPerHost: Int?
        /// Whether ``maxConnectionsPerHost`` also holds for literal addresses that ``AddressPolicy/allow`` opens, true by default. Names
        /// always have it.
        package var limitsOpenedAddresses = true
        /// How hosts are treated: asked as often as there are URLs by default.
        public var hosts = HostPolicy()
        /// Whether a site's robots.txt is read first (RFC 9309), and what it forbids ends as `refused`; false by default. Read once an hour
        /// and site; one that the server cannot give forbids everything, one that is not there nothing.
        public var asksRobots = false
        /// Whether images whose `X-Robots-Tag` says noai, noimageai, noindex, noimageindex, noml or none end as `refused`; false by
        /// default.
        public var respectsRobotsTag = false
        /// Bytes of bodies a second, all transfers together; nil (no limit) by default.
        public var limitRate: Int?
        /// Which waiting download is next, first in first out by default.
        public var executionOrder = DownloadExecutionOrder.fifo
        /// Until the request can be sent: name, connection and TLS, 10 by default.
        public var connectTimeout = 10.0
        /// Silence of a server that ends the try, first byte included, 15 by default (SDWebImage's).
        public var downloadTimeout = 15.0
        /// Bytes a second; a slower transfer ends, 1,000 by default, 0 for no limit.
        public var lowSpeedLimit = 1000
        /// How long it must be slower, 20 by default.
        public var lowSpeedTime = 20.0
        /// The whole of one try, redirects included; nil (no limit) by default.
        public var maxTime: Double?
        /// Time a URL may spend with a connection, over all of its tries; nil (no limit) by default. Waiting for a slot, a connection, the
        /// next try or ``limitRate`` does not count. The try under way ends with it.
        public var maxTotalTime: Double?
        /// The same for a URL whose bytes come more slowly than ``slowSpeed`` on the average, 60 by default; nil: no limit.
        public var maxSlowTime: Double? = 60
        /// Bytes a second from which on ``maxSlowTime`` is no limit, 65,536 by default: 64 MiB at 1 MB/s take 67 s.
        public var slowSpeed = 64 << 10
        /// Tries of a URL where failures are transient, 3 by default, the first included.
        public var maxAttempts = 3
        /// Which failures are tried again, all kinds of ``RetriedError`` by default.
        public var retriedErrors = Set(RetriedError.allCases)
        /// Status codes that are tried again beside 408, 425, 429 and 5xx; none by default.
        public var retriedStatusCodes: Set<Int> = []
        /// Bytes from which on a body that broke off is gone on with at the next try, by Range and If-Range, 64 KiB by default; nil:
        /// never. Only where the response had a strong ETag or date.
        public var resumeFrom: Int? = 64 << 10
        /// The longest first pause between tries, 0.5 by default; it doubles with each, and a random part of it is taken.
        public var retryBaseDelay = 0.5
        /// The longest of these pauses, 30 by default.
        public var retryMaxDelay = 30.0
        /// The longest `Retry-After` that is honoured, 60 by default; what asks for more is tried again then.
        public var maxRetryAfter = 60.0
        /// Redirects followed, 5 by default.
        public var maxRedirects = 5
        /// Bytes of a body, 64 MiB by default; counted as they come.
        public var maxBodyBytes = 64 << 20
        /// Bytes of all header lines of a response, those of 1xx responses before it included, 64 KiB by default.
        public var maxHeaderBytes = 64 << 10
        /// Header lines of a response, 200 by default.
        public var maxHeaderLines = 200
        /// What is sent with every request: `User-Agent` and `Accept: image/*;q=0.8` by default.
        public var headers = [
            HTTPHeader("User-Agent", userAgent(contact: nil)),
            HTTPHeader("Accept", "image/*;q=0.8"),
        ]
        /// Status codes of a response that is taken; nil (200 to 299) by default. Redirects are followed all the same.
        public var acceptableStatusCodes: [ClosedRange<Int>]?
        /// Media types of a response that is taken, as `image/png` or `image/*`; nil (any: the bytes decide) by default.
        public var acceptableContentTypes: [String]?
        /// For servers that ask who it is; the first that fits. Those of the URL itself come before.
        public var credentials: [Credential] = []
        /// A file with the certificate this client shows where a server asks for one (PEM); nil by default.
        public var clientCertificateFile: String?
        /// A file with that certificate's key; nil: it is in the same file.
        public var clientKeyFile: String?
        /// The key's password.
        public var clientKeyPassword: String?
        /// Which addresses of a name are used, `any` by default.
        public var ipVersion = IPVersion.any
        /// Whether HTTP/2 is used where a server offers it by TLS, many downloads then sharing a connection; true by default.
        public var usesHTTP2 = true
        /// The share of a body that has to come until progress is told again, 0 (always) to 1; 0 by default.
        public var minimumProgressInterval = 0.0
        /// Makes the headers of each URL's requests of those that are configured (`headersFilter`); nil by default. On the
        /// downloader's thread, so it has to be quick.
        public var headersFilter: (@Sendable (_ url: String, _ headers: [HTTPHeader]) -> [HTTPHeader])?
        /// Changes each URL's request, after ``headersFilter``; nil ends it with `invalidDownloadOperation`. On the downloader's thread.
        public var requestModifier: (@Sendable (DownloadRequest) -> DownloadRequest?)?
        /// Changes each response before it is judged; nil ends it with `invalidDownloadResponse`. On the downloader's thread.
        public var responseModifier: (@Sendable (DownloadResponse) -> DownloadResponse?)?
        /// A proxy's URL; nil (none) by default. `socks5h://` has the proxy resolve names, `socks5://` does it here. The environment's
        /// proxy variables are never asked.
        public var proxy: String?
        /// curl's `--connect-to` lines, `HOST:PORT:HOST:PORT`. What they name is open to connect to.
        public var connectTo: [String] = []
        /// curl's `--resolve` lines, `HOST:PORT:ADDRESS`. What they name is open to connect to.
        public var resolve: [String] = []
        /// A file of certificates to trust instead of the system's; nil by default.
        public var caFile: String?
        /// What may be connected to: the public Internet by default.
        public var addressPolicy = AddressPolicy()
        /// Bytes of a body kept in memory, 1 MiB by default; larger ones move to a file where ``openTemporaryFile`` is set.
        public var memoryLimit = 1 << 20
        /// Opens an unnamed file for a large body; nil (all stays in memory) by default. The body closes it.
        package var openTemporaryFile: (@Sendable () throws(WebImageError) -> Int32)?
        /// The threads that make and write such files; nil (the default): one of the downloader's own.
        package var filePool: ThreadPool?
        /// Where their calls are noted; nil by default.
        package var fileCalls: FileCalls?
        /// Looks at the first bytes, again with more of them until it returns true; its error ends the transfer at once. Called on
        /// the downloader's thread, each time with at least twice the bytes. nil by default.
        package var inspectHeader: (@Sendable (UnsafeRawBufferPointer) throws(WebImageError) -> Bool)?

        /// Which addresses of a name are used.
        public enum IPVersion: String, Sendable, CaseIterable {
            /// Whichever answers first.
            case any
            /// IPv4 alone.
            case v4
            /// IPv6 alone.
            case v6
        }

        /// The defaults.
        public init() {}

        /// Sets a header of every request; nil removes it.
        public mutating func setValue(_ value: String?, forHTTPHeaderField name: String) {
            headers.set(value, of: name)
        }

        /// The value of a header of every request.
        public func value(forHTTPHeaderField name: String) -> String? { headers.value(of: name) }

        /// Checks every bound.
        /// - Throws: `invalidConfiguration`, naming the member and its range.
        public func validate() throws(WebImageError) {
            func check(_ holds: Bool, _ rule: String) throws(WebImageError) {
                guard holds else { throw WebImageError(.invalidConfiguration, rule) }
            }
            try check((1...100_000).contains(maxConcurrentDownloads), "maxConcurrentDownloads must be 1 to 100,000")
            try check((0...100_000).contains(maxParkedDownloads), "maxParkedDownloads must be 0 to 100,000")
            try check(maxConnectionsPerHost ?? 1 >= 1, "maxConnectionsPerHost must be at least 1")
            try hosts.validate()
            try check(limitRate ?? 1024 >= 1024, "limitRate must be at least 1,024 bytes a second")
            let positive = [
                ("parkAfter", parkAfter), ("connectTimeout", connectTimeout), ("downloadTimeout", downloadTimeout),
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
            try check((1...1000).contains(maxAttempts), "maxAttempts must be 1 to 1,000")
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
            for credential in credentials {
                try check(credential.isValid, "a credential is empty or has a character that cannot be sent")
            }
            for header in headers {
                try check(header.isValid, "the header \(header.name) has a character that cannot be sent")
            }
        }

        var retryPolicy: RetryPolicy {
            RetryPolicy(
                maxAttempts: maxAttempts, baseDelay: retryBaseDelay, maxDelay: retryMaxDelay,
                maxRetryAfter: maxRetryAfter, errors: retriedErrors, statusCodes: retriedStatusCodes)
        }

        /// Where large bodies are written, by other threads than the downloader's; nil: nowhere.
        var spool: BodySpool.Place? {
            openTemporaryFile.map { open in
                let pool = filePool ?? ThreadPool(threads: 1, name: "spool")
                return BodySpool.Place(open: open, pool: pool, calls: fileCalls)
            }
        }

        /// What robots.txt and X-Robots-Tag call this program: the first word of its User-Agent.
        var productToken: String {
            let agent = headers.first { $0.name.lowercased() == "user-agent" }?.value ?? ""
            return String(agent.prefix { $0.isLetter || $0 == "-" || $0 == "_" })
        }

        /// What keeps to ``limitRate``, and to what is shared with others.
        func bandwidth(shared rate: Int?) -> BandwidthLimit? {
            guard limitRate != nil || rate != nil else { return nil }
            return BandwidthLimit(
                bytesPerSecond: limitRate, shared: rate.map { BandwidthLease(bytesPerSecond: $0) })
        }

        /// What keeps to ``hosts``, where there is anything to be kept to.
        func governor(isShared: Bool) -> HostGovernor? {
            hosts.isIdle ? nil : HostGovernor(hosts, isShared: isShared)
        }

        /// The configured headers and a download's own, which come first where both have one.
        func headers(with own: [HTTPHeader]) -> [HTTPHeader] {
            let names = Set(own.map { $0.name.lowercased() })
            return headers.filter { !names.contains($0.name.lowercased()) } + own
        }

        /// What the filter and the modifier make of a download's request; no headers where there is neither.
        func modifiedRequest(
            _ key: DownloadOperation.Key, _ request: RequestURL
        ) throws(WebImageError) -> (request: RequestURL, headers: [HTTPHeader]?) {
            guard headersFilter != nil || requestModifier != nil else { return (request, nil) }
            var wanted = DownloadRequest(url: key.url, headers: headers(with: key.headers))
            if let headersFilter { wanted.headers = headersFilter(key.url, wanted.headers) }
            if let requestModifier {
                guard let modified = requestModifier(wanted) else {
                    throw WebImageError(.invalidDownloadOperation, "the request modifier refused the request")
                }
                wanted = modified
            }
            if let bad = wanted.headers.first(where: { !$0.isValid }) {
                throw WebImageError(.invalidDownloadOperation, "the modified header \(bad.name) cannot be sent")
            }
            return (wanted.url == key.url ? request : try RequestURL(wanted.url), wanted.headers)
        }

        /// How often running transfers are looked at: at least eight times within the shortest limit.
        var checkInterval: Double {
            let shortest = min(
                parkAfter, downloadTimeout, lowSpeedTime, maxTime ?? .infinity, maxTotalTime ?? .infinity,
                maxSlowTime ?? .infinity, connectTimeout)
            return max(0.002, min(0.25, shortest / 8))
        }

        /// Transfers at once to the host of a request.
        func connectionLimit(to request: RequestURL) -> Int {
            guard let limit = maxConnectionsPerHost else { return .max }
            if !limitsOpenedAddresses, let address = request.literalAddress,
                addressPolicy.opens(address, port: request.port)
            {
                return .max
            }
            return limit
        }

        /// Connections kept, used ones included: with fewer, those of finished transfers would be closed while others are parked.
        func connectionLimit(_ concurrent: Int) -> Int { 2 * concurrent + maxParkedDownloads }
    }
}
