package import WebImage

/// What one line of a `prefetch.lock` says: which bytes a URL has.
///
/// A lock is a list of URLs like any other, whose lines have more fields behind a TAB: SHA-256 of the bytes, how many they are, and the size
/// in pixels.
package struct ImageLock: Sendable, Equatable {
    /// What a lock begins with, two comments of a list.
    package static let head =
        "# prefetch.lock 1\n# url, sha256, bytes, pixels; prefetch-coord run --locked fetches and checks it\n"

    package var url: String
    package var digest: Digest
    package var size: Int
    /// Pixels; 0 where nobody looked.
    package var width: Int, height: Int

    package init(url: String, digest: Digest, size: Int, width: Int = 0, height: Int = 0) {
        (self.url, self.digest, self.size, self.width, self.height) = (url, digest, size, width, height)
    }

    /// Its line, with its end.
    package var line: String {
        "\(url)\t\(digest.hex)\t\(size)\t\(width > 0 ? "\(width)x\(height)" : "-")\n"
    }

    /// The digest that a line of a list asks for, and where its URL ends; nil where the line asks for none.
    static func split(_ line: [UInt8]) -> (end: Int, digest: Digest)? {
        let tab = UInt8(ascii: "\t")
        guard let end = line.firstIndex(of: tab) else { return nil }
        let field = line[(end + 1)...].prefix { $0 != tab }
        guard field.count == 64, let digest = Digest(hex: String(decoding: field, as: UTF8.self)) else { return nil }
        return (end, digest)
    }
}

extension URLSettings {
    /// What a line of a lock asks: nothing but these bytes.
    package convenience init?(digest: Digest) { self.init(text: "{\"sha256\":\"\(digest.hex)\"}") }
}

extension PrefetchJob.Entry {
    /// SHA-256 that the bytes must have, or the URL ends `mismatch`; nil: any.
    package var digest: Digest? { settings?.sha256.flatMap { Digest(hex: $0) } }
}
