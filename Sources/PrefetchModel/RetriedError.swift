/// A kind of failure that may heal by itself, so that another try at once can help.
public enum RetriedError: String, Sendable, CaseIterable {
    /// A limit of time or speed passed.
    case timeout
    /// The name did not resolve.
    case dns
    /// No connection.
    case connect
    /// The connection was lost, or ended before the body did.
    case truncated
    /// 408, 425, 429 and 5xx.
    case status

    /// The kind of a transient error.
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
