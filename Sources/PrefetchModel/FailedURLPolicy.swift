/// Which failures put a URL on the blacklist (SDWebImageManager's `failedURLs`), and when that list is consulted.
///
/// Applied by a worker's `URLRun`, and by `ImageManager` without a queue. Entries last as `BatchOptions.blacklistTTL` says with `smart`, and
/// for ever with the others and in `FailedURLs`.
///
/// No policy lists failures caused by our own settings (`refused`, `imageRefused`, `tooLarge`, `invalidURL`, `cancelled`, `notCached`, `digestMismatch`,
/// `unsupportedFormat`, local faults): changing the setting resolves them.
public enum FailedURLPolicy: String, Sendable, CaseIterable {
    /// Permanent failures reported by the origin: 404, 410, 451, and a complete body that is not an image, or
    /// that crashes what is to decode it. The default.
    case smart
    /// SDWebImage 3.x: every error except its seven exempt ones; an HTTP status of 400 or more counts as an error, except 401 and 407: their
    /// challenge is cancelled, and "cancelled" is exempt.
    case sd3
    /// SDWebImage 4.x: as 3.x, but a lost connection is exempt too, and a status surfaces as "cancelled", which is exempt.
    case sd4
    /// Nothing is listed and the list is not consulted.
    case none

    /// Whether the list is consulted before the cache, as in SDWebImage; otherwise a cached URL is always a hit.
    public var isCheckedBeforeCache: Bool { self != .smart && self != .none }

    /// Whether entries expire.
    public var lapses: Bool { self == .smart }

    /// Whether a failure is listed.
    public func lists(_ error: WebImageError) -> Bool {
        switch self {
        case .none: return false
        case .smart:
            if error.code == .invalidDownloadStatusCode { return [404, 410, 451].contains(error.httpStatus) }
            return error.code == .badImageData && !error.isTransient || error.code == .decoderCrashed
        case .sd3, .sd4:
            switch error.code {
            case .invalidDownloadStatusCode: return self == .sd3 && error.httpStatus != 401 && error.httpStatus != 407
            case .connectionLost: return self == .sd3
            case .secureConnectionFailed, .tooManyRedirects: return true
            case .badImageData, .decoderCrashed: return true
            default: return false
            }
        }
    }
}
