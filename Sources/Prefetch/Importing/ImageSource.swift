internal import CLinux
internal import FoundationEssentials
internal import Glibc
package import WebImage

package enum ImageSource: Sendable {
    /// A cache of SDWebImage, whose file names have to be matched with the URLs of a list.
    case sdWebImage(SDWebImageFolder)
    /// Files named by the line numbers of a list, as made by `export --format files`.
    case numbered(NumberedFolder)
    /// Files named by a manifest with `url` and `path`, as made by `export --format jsonl`.
    case manifest(String)
    /// Files whose URL is `base` plus their path below the folder.
    case folder(String, base: String)

    package struct Item: Sendable {
        package var url: String
        /// Required SHA-256; nil: any.
        package var digest: Digest?
        package var name: String
        /// Nil without a file.
        var read: @Sendable (_ most: Int) throws(WebImageError) -> [UInt8]?
    }

    /// Calls `body` with every image, in order, until it returns false.
    /// - Throws: errors of `body`; `unreadableList`, `notFound`.
    package func forEach(
        list: URLList?, _ body: (Item) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        switch self {
        case .sdWebImage(let folder):
            try await list?.forEach { entry async throws(PrefetchError) in
                let url = entry.url
                return try await body(
                    Item(url: url, digest: entry.digest, name: url) { most throws(WebImageError) in
                        try folder.data(forKey: url, most: most)
                    })
            }
        case .numbered(let folder):
            try await list?.forEach { entry async throws(PrefetchError) in
                let name = folder.name(ofLine: entry.line)
                return try await body(
                    Item(url: entry.url, digest: entry.digest, name: name ?? entry.url) { most throws(WebImageError) in
                        guard let name else { return nil }
                        return try Self.read("\(folder.path)/\(name)", most: most)
                    })
            }
        case .manifest(let path): try await Self.forEach(ofManifest: path, body)
        case .folder(let path, let base): _ = try await Self.forEach(below: path, url: base, body)
        }
    }

    private struct ManifestLine: Decodable {
        var url: String?, path: String?, sha256: String?
    }

    private static func forEach(
        ofManifest path: String, _ body: (Item) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        var reader = try LineReader(once: path)
        while let text = try reader.next() {
            guard !text.isEmpty else { continue }
            guard let line = try? JSONDecoder().decode(ManifestLine.self, from: Data(text)), let url = line.url else {
                throw PrefetchError(
                    .unreadableList, "line \(reader.lineNumber) of \(path) is not an object with a url",
                    hint: "a manifest is what export --format jsonl writes")
            }
            // A line without an image.
            guard let file = line.path else { continue }
            let item = Item(url: url, digest: line.sha256.flatMap { Digest(hex: $0) }, name: file) {
                most throws(WebImageError) in try read(file, most: most)
            }
            guard try await body(item) else { return }
        }
    }

    private static func forEach(
        below path: String, url: String, _ body: (Item) async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) -> Bool {
        for (name, isFolder) in try NumberedFolder.entries(of: path) where !name.hasPrefix(".") {
            let below = "\(path)/\(name)"
            let nested = url + escaped(name)
            if isFolder {
                guard try await forEach(below: below, url: nested + "/", body) else { return false }
            } else {
                let item = Item(url: nested, digest: nil, name: below) { most throws(WebImageError) in
                    try read(below, most: most)
                }
                guard try await body(item) else { return false }
            }
        }
        return true
    }

    /// Escapes a part of a URL's path (RFC 3986 section 3.3).
    private static func escaped(_ name: String) -> String {
        name.utf8.reduce(into: "") { text, byte in
            let isPlain =
                UnicodeScalar(byte).properties.isAlphabetic && byte < 0x80
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-._~!$&'()*+,;=:@".utf8.contains(byte)
            text += isPlain ? String(UnicodeScalar(byte)) : "%" + Digest.hex([byte]).uppercased()
        }
    }

    /// A whole file; nil if it is missing, not a regular file or too long. Does not follow a symbolic link at its end.
    private static func read(_ path: String, most: Int) throws(WebImageError) -> [UInt8]? {
        let file = clinux_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0)
        func failed() -> WebImageError {
            let code = errno
            return WebImageError(.localFault, "cannot read \(path): \(errnoText(code))", underlyingCode: code)
        }
        guard file >= 0 else {
            if errno == ENOENT || errno == ELOOP { return nil }
            throw failed()
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= off_t(most) else {
            return nil
        }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while bytes.count <= most {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count == 0 { return bytes }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw failed() }
            bytes += buffer[..<count]
        }
        return nil
    }
}
