/// Which responses are accepted, if different from the default (any type, status 200 to 299).
struct ResponseRules: Sendable {
    var statusCodes: [ClosedRange<Int>]?
    /// In lower case; `image/*` matches every image type.
    var contentTypes: [String]?
    var modify: (@Sendable (DownloadResponse) -> DownloadResponse?)?

    /// Nil if the defaults apply, so that responses need no check.
    init?(_ configuration: ImageDownloader.Configuration) {
        statusCodes = configuration.acceptableStatusCodes
        contentTypes = configuration.acceptableContentTypes?.map(\.asciiLowercased)
        modify = configuration.responseModifier
        if statusCodes == nil && contentTypes == nil && modify == nil { return nil }
    }

    /// Evaluates a response that is neither a redirect nor 304.
    /// - Returns: the response, possibly replaced by the modifier.
    func judge(_ response: DownloadResponse, retryAfter: Double?) throws(WebImageError) -> DownloadResponse {
        var response = response
        if let modify {
            guard let modified = modify(response) else {
                throw WebImageError(
                    .invalidDownloadResponse, "the response modifier refused the response",
                    httpStatus: response.statusCode)
            }
            response = modified
        }
        let status = response.statusCode
        guard (statusCodes ?? [200...299]).contains(where: { $0.contains(status) }) else {
            guard (200..<300).contains(status) else {
                let demand = AccessDemand(status: status) { name in
                    response.headers.filter { $0.isNamed(name) }.map(\.value)
                }
                throw WebImageError(status: status, retryAfter: retryAfter, demand: demand)
            }
            throw WebImageError(
                .invalidDownloadStatusCode, "HTTP \(status) is none of the accepted status codes", httpStatus: status)
        }
        if let contentTypes {
            let type = Substring(
                (response.value(forHTTPHeaderField: "Content-Type") ?? "").utf8.prefix {
                    $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ")
                }
            ).asciiLowercased
            guard contentTypes.contains(where: { Self.matches(type, $0) }) else {
                throw WebImageError(
                    .invalidDownloadContentType,
                    type.isEmpty
                        ? "no Content-Type, and it has to be an accepted one" : "Content-Type \(type) is not accepted",
                    reason: .contentType, httpStatus: status)
            }
        }
        return response
    }

    private static func matches(_ type: String, _ pattern: String) -> Bool {
        pattern.endsWithBytes(of: "/*")
            ? type.utf8.starts(with: pattern.utf8.dropLast()) : type.hasBytes(of: pattern)
    }
}
