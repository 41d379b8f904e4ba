/// A kind of failure worth an immediate retry.
public enum RetriedError: String, Sendable, CaseIterable {
    /// A time or speed limit was exceeded.
    case timeout
    /// The name did not resolve.
    case dns
    /// The connection failed.
    case connect
    /// The connection was lost, or ended before the body did.
    case truncated
    /// 408, 425, 429 and 5xx.
    case status

    package init?(_ code: WebImageError.Code) {
        switch code {
        case .timedOut: self = .timeout
        case .cannotFindHost: self = .dns
        case .cannotConnectToHost: self = .connect
        case .connectionLost: self = .truncated
        case .invalidDownloadStatusCode: self = .status
        default: return nil
        }
    }
}
