/// Why a URL ended without an image. The numbers of SDWebImage 5 are kept where it has one, so that operators can search for them.
public struct WebImageError: Error, Sendable, CustomStringConvertible {
    /// What went wrong. Extensible: compare with `==`, never exhaustively.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// SDWebImageError's number where there is one, otherwise 3000 and up.
        public let rawValue: Int

        /// A code by its number.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The line is no http or https URL (SDWebImageErrorInvalidURL).
        public static let invalidURL = Code(rawValue: 1000)
        /// A complete body that is no whole image (SDWebImageErrorBadImageData).
        public static let badImageData = Code(rawValue: 1001)
        /// 304, and there is nothing in the cache (SDWebImageErrorCacheNotModified).
        public static let cacheNotModified = Code(rawValue: 1002)
        /// On the blacklist, and `retryFailed` was not given (SDWebImageErrorBlackListed).
        public static let blackListed = Code(rawValue: 1003)
        /// The request modifier refused the request (SDWebImageErrorInvalidDownloadOperation).
        public static let invalidDownloadOperation = Code(rawValue: 2000)
        /// A status code outside 200 to 299, or of those that are accepted (SDWebImageErrorInvalidDownloadStatusCode).
        public static let invalidDownloadStatusCode = Code(rawValue: 2001)
        /// Cancelled by its caller (SDWebImageErrorCancelled).
        public static let cancelled = Code(rawValue: 2002)
        /// The response modifier refused the response (SDWebImageErrorInvalidDownloadResponse).
        public static let invalidDownloadResponse = Code(rawValue: 2003)
        /// A type that is not accepted (SDWebImageErrorInvalidDownloadContentType).
        public static let invalidDownloadContentType = Code(rawValue: 2004)
        /// The connect, idle, low-speed or total limit passed (NSURLErrorTimedOut).
        public static let timedOut = Code(rawValue: 3001)
        /// The host name did not resolve (NSURLErrorCannotFindHost).
        public static let cannotFindHost = Code(rawValue: 3002)
        /// No connection to the host (NSURLErrorCannotConnectToHost).
        public static let cannotConnectToHost = Code(rawValue: 3003)
        /// The TLS handshake or the certificate failed (NSURLErrorSecureConnectionFailed).
        public static let secureConnectionFailed = Code(rawValue: 3004)
        /// More bytes than the size limit allows (NSURLErrorDataLengthExceedsMaximum).
        public static let tooLarge = Code(rawValue: 3005)
        /// Refused by our own policy: a private address, a scheme, a redirect that leaves TLS.
        public static let refused = Code(rawValue: 3006)
        /// Reset, or a body shorter than announced (NSURLErrorNetworkConnectionLost).
        public static let connectionLost = Code(rawValue: 3007)
        /// More redirects than allowed, or a loop (NSURLErrorHTTPTooManyRedirects).
        public static let tooManyRedirects = Code(rawValue: 3008)
        /// `fromCacheOnly`, or the delegate said no, and the cache has no such image.
        public static let notCached = Code(rawValue: 3009)
        /// The digest differs from the one that was expected.
        public static let digestMismatch = Code(rawValue: 3010)
        /// A known format, or a kind of one, that cannot be verified; ``WebImageError/unverifiedFormat`` says which.
        public static let unsupportedFormat = Code(rawValue: 3011)
        /// Not the URL's fault: disk full, no descriptors, no network. Never an outcome and never blacklisted; the same URL is
        /// tried again when the cause is gone.
        public static let localFault = Code(rawValue: 3100)
        /// A setting is out of its range; the message names it. Never the outcome of a URL.
        public static let invalidConfiguration = Code(rawValue: 3101)
    }

    /// What went wrong.
    public var code: Code
    /// One sentence for a person, without the URL.
    public var message: String
    /// The status code, where a response came.
    public var httpStatus: Int?
    /// The CURLcode or errno below this error, for a search in the C library's manual.
    public var underlyingCode: Int32?
    /// How often the URL was requested, redirects not counted; 0 where no request was made.
    public var attempts = 0
    /// Whether another try at once could help: timeouts, name resolution, connections, 408, 425, 429, 5xx.
    public var isTransient = false
    /// The format that cannot be verified, where `code` is `unsupportedFormat`.
    public var unverifiedFormat: ImageFormat?
    /// The bytes end inside the image: where the server announced no length, the transfer was cut, and another try could help.
    public var isIncompleteImage = false
    /// Seconds the server asked us to wait (Retry-After, RFC 9110 section 10.2.3).
    public var retryAfter: Double?
    /// The host and address that were refused, where `code` is `refused`; the remedy names them.
    public var refusedAddress: String?

    /// An error with its sentence; the other fields are set by whoever knows them.
    public init(
        _ code: Code, _ message: String, httpStatus: Int? = nil, underlyingCode: Int32? = nil, isTransient: Bool = false
    ) {
        self.code = code
        self.message = message
        self.httpStatus = httpStatus
        self.underlyingCode = underlyingCode
        self.isTransient = isTransient
    }

    /// The message, with the status where there is one.
    public var description: String { message }

    /// How a URL ends that failed so; nil for `localFault`, which is nobody's outcome, and for a code this version does not know.
    public var outcome: PrefetchOutcome? {
        switch code {
        case .invalidURL: .invalidURL
        case .badImageData: .badImage
        case .blackListed: .blacklisted
        case .invalidDownloadStatusCode, .tooManyRedirects, .cacheNotModified: .httpError
        case .cancelled: .cancelled
        case .timedOut: .timeout
        case .cannotFindHost: .dns
        case .cannotConnectToHost: .connect
        case .secureConnectionFailed: .tls
        case .tooLarge: .tooLarge
        case .refused, .invalidDownloadOperation, .invalidDownloadResponse, .invalidDownloadContentType: .refused
        case .connectionLost: .truncated
        case .notCached: .notCached
        case .digestMismatch: .mismatch
        case .unsupportedFormat: .unsupported
        default: nil
        }
    }

    /// Of a call whose task was cancelled, or whose permit was taken back.
    package static let downloadCancelled = WebImageError(.cancelled, "cancelled")
}
