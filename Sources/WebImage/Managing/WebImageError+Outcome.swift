extension WebImageError {
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
}
