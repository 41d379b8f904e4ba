/// Which failures put a URL onto the list of failed URLs (SDWebImageManager's `failedURLs`), and when that list is asked.
///
/// A worker's `URLRun` and, where there is no queue, `ImageManager` apply it. How long an entry is kept: `BatchOptions.blacklistTTL`, 24 h by
/// default, under `smart`; for ever under the others, and in `FailedURLs`.
///
/// No policy lists what our own settings decided: `refused`, `tooLarge`, `invalidURL`, `cancelled`, `notCached`,
/// `digestMismatch`, `unsupportedFormat`, local faults. Changing the setting is enough there.
public enum FailedURLPolicy: String, Sendable, CaseIterable {
    /// What the origin said and that will not heal by itself: 404, 410, 451, and a complete body that is no image. The default.
    case smart
    /// SDWebImage 3.x: every error but its seven exempt ones; there, an HTTP status of 400 or more is an error like any other.
    case sd3
    /// SDWebImage 4.x: as 3.x, but a lost connection is exempt too, and a status surfaces as "cancelled", which is exempt.
    case sd4
    /// Nothing is listed and the list is not asked.
    case none

    /// Whether the list is asked before the cache, as the original did; otherwise a cached URL is a hit whatever the list says.
    public var asksBeforeCache: Bool { self == .sd3 || self == .sd4 }

    /// Whether entries lapse after a time.
    public var lapses: Bool { self == .smart }

    /// Whether a failure is listed.
    public func lists(_ error: WebImageError) -> Bool {
        switch self {
        case .none: return false
        case .smart:
            if error.code == .invalidDownloadStatusCode { return [404, 410, 451].contains(error.httpStatus) }
            return error.code == .badImageData && !error.isTransient
        case .sd3, .sd4:
            switch error.code {
            case .invalidDownloadStatusCode: return self == .sd3
            case .connectionLost: return self == .sd3
            case .secureConnectionFailed, .tooManyRedirects: return true
            case .badImageData: return true
            default: return false
            }
        }
    }
}
