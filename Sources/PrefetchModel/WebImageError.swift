/// Why a URL ended without an image. Codes reuse the numbers of SDWebImage 5 where they exist, so that operators can search for them.
public struct WebImageError: Error, Sendable, CustomStringConvertible {
    /// An error code. Extensible: compare with `==`, never exhaustively.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// SDWebImageError's number, or 3000 and up if it has none.
        public let rawValue: Int

        /// Creates a code from its number.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The line is not an http or https URL (SDWebImageErrorInvalidURL).
        public static let invalidURL = Code(rawValue: 1000)
        /// A complete body that is not a valid image (SDWebImageErrorBadImageData).
        public static let badImageData = Code(rawValue: 1001)
        /// 304 without a cached image (SDWebImageErrorCacheNotModified).
        public static let cacheNotModified = Code(rawValue: 1002)
        /// On the blacklist, and `retryFailed` was not given (SDWebImageErrorBlackListed).
        public static let blackListed = Code(rawValue: 1003)
        /// The request modifier refused the request (SDWebImageErrorInvalidDownloadOperation).
        public static let invalidDownloadOperation = Code(rawValue: 2000)
        /// A status code outside 200 to 299, or outside the accepted ones (SDWebImageErrorInvalidDownloadStatusCode).
        public static let invalidDownloadStatusCode = Code(rawValue: 2001)
        /// Cancelled by its caller (SDWebImageErrorCancelled).
        public static let cancelled = Code(rawValue: 2002)
        /// The response modifier refused the response (SDWebImageErrorInvalidDownloadResponse).
        public static let invalidDownloadResponse = Code(rawValue: 2003)
        /// A content type that is not accepted (SDWebImageErrorInvalidDownloadContentType).
        public static let invalidDownloadContentType = Code(rawValue: 2004)
        /// The connect, idle, low-speed or total limit was exceeded (NSURLErrorTimedOut).
        public static let timedOut = Code(rawValue: 3001)
        /// The host name did not resolve (NSURLErrorCannotFindHost).
        public static let cannotFindHost = Code(rawValue: 3002)
        /// The connection to the host failed (NSURLErrorCannotConnectToHost).
        public static let cannotConnectToHost = Code(rawValue: 3003)
        /// The TLS handshake or the certificate failed (NSURLErrorSecureConnectionFailed).
        public static let secureConnectionFailed = Code(rawValue: 3004)
        /// More bytes than the size limit allows (NSURLErrorDataLengthExceedsMaximum).
        public static let tooLarge = Code(rawValue: 3005)
        /// Refused by our own policy: a private address, a scheme, a redirect from https to http.
        public static let refused = Code(rawValue: 3006)
        /// Reset, or a body shorter than announced (NSURLErrorNetworkConnectionLost).
        public static let connectionLost = Code(rawValue: 3007)
        /// More redirects than allowed, or a loop (NSURLErrorHTTPTooManyRedirects).
        public static let tooManyRedirects = Code(rawValue: 3008)
        /// Not in the cache, and `fromCacheOnly` or the delegate prevented the download.
        public static let notCached = Code(rawValue: 3009)
        /// The digest differs from the expected one.
        public static let digestMismatch = Code(rawValue: 3010)
        /// A known format or variant that cannot be verified; see ``WebImageError/unverifiedFormat``.
        public static let unsupportedFormat = Code(rawValue: 3011)
        /// The image breaks one of the ``ImageRules``; the message has the figure.
        public static let imageRefused = Code(rawValue: 3012)
        /// Its bytes ended two processes that were to decode it.
        public static let decoderCrashed = Code(rawValue: 3013)
        /// Not the URL's fault: disk full, no descriptors, no network. Never an outcome, never blacklisted; retried when the cause is gone.
        public static let localFault = Code(rawValue: 3100)
        /// A setting is out of range; the message names it. Never the outcome of a URL.
        public static let invalidConfiguration = Code(rawValue: 3101)
    }

    /// The kind of error.
    public var code: Code
    /// One sentence for humans, without the URL.
    public var message: String
    /// What tells it apart from others with the same outcome, where that matters to who wants to mend it.
    public var reason: FailureReason?
    /// The HTTP status code, if a response arrived.
    public var httpStatus: Int?
    /// The underlying CURLcode or errno.
    public var underlyingCode: Int32?
    /// How often the URL was requested, not counting redirects; 0 if no request was made.
    public var tries = 0
    /// Whether an immediate retry could help: timeouts, name resolution, connections, 408, 425, 429, 5xx.
    public var isTransient = false
    /// The format that cannot be verified, if `code` is `unsupportedFormat`.
    public var unverifiedFormat: ImageFormat?
    /// The bytes end inside the image. If the server announced no length, the transfer was cut and a retry could help.
    public var isIncompleteImage = false
    /// Seconds to wait as requested by the server (Retry-After, RFC 9110 section 10.2.3).
    public var retryAfter: Double?
    /// Announced bytes of the body that were not transferred, if `code` is `imageRefused` and a request was made.
    public var savedBytes: Int?
    /// The page that came instead of an image, if `code` is `badImageData` and the bytes are a text.
    package var page: PageMark?
    /// Whether a `localFault` is one of this machine's way to the network: no route, or a proxy that cannot be used.
    package var isNetworkFault = false
    /// Whether the server sent without an end what is no part of a response.
    package var isFlood = false
    /// Whether a `localFault` may be of one file alone, as a bad sector is, and not of its disk.
    package var isOfOneFile = false
    /// The refused host and address, if `code` is `refused`; for the hint.
    public var refusedAddress: String?

    /// Creates an error; set the other fields afterwards.
    public init(
        _ code: Code, _ message: String, reason: FailureReason? = nil, httpStatus: Int? = nil,
        underlyingCode: Int32? = nil, isTransient: Bool = false
    ) {
        self.code = code
        self.message = message
        self.reason = reason
        self.httpStatus = httpStatus
        self.underlyingCode = underlyingCode
        self.isTransient = isTransient
    }

    /// The message.
    public var description: String { message }

    /// The outcome of a URL that failed with this error; nil for `localFault` and for unknown codes.
    public var outcome: PrefetchOutcome? {
        if let reason { return reason.outcome }
        return switch code {
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
        case .refused, .imageRefused, .invalidDownloadOperation, .invalidDownloadResponse, .invalidDownloadContentType:
            .refused
        case .connectionLost: .truncated
        case .notCached: .notCached
        case .digestMismatch: .mismatch
        case .unsupportedFormat: .unsupported
        case .decoderCrashed: .poison
        default: nil
        }
    }

    /// Whether a page came instead of an image.
    package var isPage: Bool { page != nil }

    /// Whether a machine without network, resolver or proxy, or one behind a portal, fails in the same way for every URL.
    package var mayBeLocal: Bool {
        switch code {
        case .cannotConnectToHost, .cannotFindHost, .secureConnectionFailed, .timedOut: true
        default: isPage
        }
    }

    /// The task was cancelled, or its permit was revoked.
    package static let downloadCancelled = WebImageError(.cancelled, "cancelled")
}
