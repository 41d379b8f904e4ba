/// The validators for a conditional request, in the extended attribute `user.prefetch.http`: version 3, then ETag and Last-Modified, each as
/// length (u16, little endian) and bytes, then the end of freshness (i64, little endian; 0: unspecified), then, of a file that was made of
/// what was fetched, the SHA-256 of that.
public struct HTTPValidators: Sendable, Equatable {
    /// As sent by the server, with quotes (RFC 9110 section 8.8.3).
    public var etag: String?
    /// As sent by the server (RFC 9110 section 8.8.2).
    public var lastModified: String?
    /// End of freshness in seconds since 1970; nil if unspecified.
    public var freshUntil: Int?
    /// SHA-256 of the content that the validators are of; nil: that of the file itself, or unknown.
    public var contentDigest: Digest?

    /// Creates validators. An ETag or date of more than 1,024 bytes is not stored: half of one matches nothing.
    public init(etag: String? = nil, lastModified: String? = nil, freshUntil: Int? = nil) {
        self.etag = etag
        self.lastModified = lastModified
        self.freshUntil = freshUntil
    }

    /// The headers of a conditional request (RFC 9110 section 13.1).
    package var conditions: [HTTPHeader] {
        [etag.map { HTTPHeader("If-None-Match", $0) }, lastModified.map { HTTPHeader("If-Modified-Since", $0) }]
            .compactMap { $0 }.filter(\.isValid)
    }

    static let limit = 1024
    private static let version: UInt8 = 3

    package init?(_ bytes: some Collection<UInt8>) {
        var rest = Array(bytes)[...]
        guard rest.popFirst() == Self.version else { return nil }
        var fields: [String?] = []
        for _ in 0..<2 {
            guard let low = rest.popFirst(), let high = rest.popFirst() else { return nil }
            let count = Int(low) | Int(high) << 8
            guard count <= rest.count else { return nil }
            fields.append(count == 0 ? nil : String(decoding: rest.prefix(count), as: UTF8.self))
            rest = rest.dropFirst(count)
        }
        guard rest.count >= 8 else { return nil }
        let end = rest.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        self.init(
            etag: fields[0], lastModified: fields[1],
            freshUntil: end == 0 ? nil : max(1, Plausible.time(Int(truncatingIfNeeded: Int64(bitPattern: end)))))
        contentDigest = Digest(rest.dropFirst(8))
    }

    package var encoded: [UInt8] {
        let (etag, lastModified) = (Self.kept(etag), Self.kept(lastModified))
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1 + 2 + etag.count + 2 + lastModified.count + 8 + 32)
        bytes.append(Self.version)
        Self.append(etag, to: &bytes)
        Self.append(lastModified, to: &bytes)
        let end = UInt64(bitPattern: Int64(freshUntil ?? 0))
        for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: end >> (8 * UInt64(shift)))) }
        if let contentDigest { bytes += contentDigest.bytes }
        return bytes
    }

    private static func kept(_ field: String?) -> String.UTF8View {
        guard let field = field?.utf8, field.count <= limit else { return "".utf8 }
        return field
    }

    private static func append(_ field: String.UTF8View, to bytes: inout [UInt8]) {
        bytes.append(UInt8(truncatingIfNeeded: field.count))
        bytes.append(UInt8(truncatingIfNeeded: field.count >> 8))
        bytes.append(contentsOf: field)
    }
}
