/// A request as a modifier gets it (SDWebImageDownloaderRequestModifier).
public struct DownloadRequest: Sendable, Equatable {
    /// Where it goes; the image keeps the URL it was asked for by.
    public var url: String
    /// All its headers. Where a redirect leaves the site, only harmless ones go along.
    public var headers: [HTTPHeader]

    /// The value of a header, whatever the case of its name.
    public func value(forHTTPHeaderField name: String) -> String? { headers.value(of: name) }

    /// Sets a header; nil removes it.
    public mutating func setValue(_ value: String?, forHTTPHeaderField name: String) {
        headers.set(value, of: name)
    }
}

/// A response's header as a modifier gets it (SDWebImageDownloaderResponseModifier).
public struct DownloadResponse: Sendable, Equatable {
    /// Where it came from, the last hop.
    public var url: String
    /// The status code, which decides whether the body is wanted.
    public var statusCode: Int
    /// Its headers, in order.
    public var headers: [HTTPHeader]

    /// The value of a header, whatever the case of its name.
    public func value(forHTTPHeaderField name: String) -> String? { headers.value(of: name) }

    /// Sets a header; nil removes it.
    public mutating func setValue(_ value: String?, forHTTPHeaderField name: String) {
        headers.set(value, of: name)
    }
}

extension [HTTPHeader] {
    func value(of name: String) -> String? {
        let name = name.lowercased()
        return first { $0.name.lowercased() == name }?.value
    }

    mutating func set(_ value: String?, of name: String) {
        let key = name.lowercased()
        removeAll { $0.name.lowercased() == key }
        if let value { append(HTTPHeader(name, value)) }
    }
}
