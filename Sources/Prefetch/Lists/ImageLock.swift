package import WebImage

/// A line of a `prefetch.lock`: the bytes of a URL.
///
/// A lock is a list of URLs with further fields after a TAB: SHA-256 and number of the bytes, and the size in pixels.
package struct ImageLock: Sendable, Equatable {
    /// The head of a lock, comments for a list.
    package static let head =
        "# prefetch.lock 1\n# url, sha256, bytes, pixels; prefetch-coord run fetches and checks it\n"

    package var url: String
    package var digest: Digest
    package var size: Int
    /// Pixels; 0 if unknown.
    package var width: Int, height: Int

    package init(url: String, digest: Digest, size: Int, width: Int = 0, height: Int = 0) {
        (self.url, self.digest, self.size, self.width, self.height) = (url, digest, size, width, height)
    }

    /// Including the line end.
    package var line: String {
        "\(url)\t\(digest.hex)\t\(size)\t\(width > 0 ? "\(width)x\(height)" : "-")\n"
    }

    /// The digest required by a line of a list, and the end of its URL; nil if none is required.
    static func split(_ line: [UInt8]) -> (end: Int, digest: Digest)? {
        let tab = UInt8(ascii: "\t")
        guard let end = line.firstIndex(of: tab) else { return nil }
        let field = line[(end + 1)...].prefix { $0 != tab }
        guard field.count == 64, let digest = Digest(hex: String(decoding: field, as: UTF8.self)) else { return nil }
        return (end, digest)
    }
}

extension URLSettings {
    /// The settings of a lock's line: only these bytes.
    package convenience init?(digest: Digest) { self.init(text: "{\"sha256\":\"\(digest.hex)\"}") }
}

extension PrefetchJob.Entry {
    /// Required SHA-256, or the URL ends `mismatch`; nil: any.
    package var digest: Digest? { settings?.sha256.flatMap { Digest(hex: $0) } }
}
