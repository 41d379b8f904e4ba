/// The request passed to a request modifier (SDWebImageDownloaderRequestModifier).
public struct DownloadRequest: Sendable, Equatable {
    /// Target of the request; the image keeps its original URL as identity.
    public var url: String
    /// All headers. After a redirect to another site only harmless ones are sent.
    public var headers: [HTTPHeader]

    /// The value of a header; the name is case-insensitive.
    public func value(forHTTPHeaderField name: String) -> String? { headers.value(of: name) }

    /// Sets a header; nil removes it.
    public mutating func setValue(_ value: String?, forHTTPHeaderField name: String) {
        headers.set(value, of: name)
    }
}

/// The response header passed to a response modifier (SDWebImageDownloaderResponseModifier).
public struct DownloadResponse: Sendable, Equatable {
    /// The URL of the last hop.
    public var url: String
    /// The status code, which determines whether the body is accepted.
    public var statusCode: Int
    /// Headers in order.
    public var headers: [HTTPHeader]

    /// The value of a header; the name is case-insensitive.
    public func value(forHTTPHeaderField name: String) -> String? { headers.value(of: name) }

    /// Sets a header; nil removes it.
    public mutating func setValue(_ value: String?, forHTTPHeaderField name: String) {
        headers.set(value, of: name)
    }
}

extension [HTTPHeader] {
    func value(of name: String) -> String? {
        first { $0.isNamed(name) }?.value
    }

    mutating func set(_ value: String?, of name: String) {
        removeAll { $0.isNamed(name) }
        if let value { append(HTTPHeader(name, value)) }
    }
}
