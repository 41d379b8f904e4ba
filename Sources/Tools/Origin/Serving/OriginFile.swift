internal import CLinux
internal import Glibc

/// An open file of a served folder; closed after the last response that sends it.
package final class OriginFile: Sendable {
    let descriptor: Int32
    let count: Int
    let entityTag: String

    /// Opens a regular file below a folder; no path, link or `..` can escape it (`RESOLVE_BENEATH`, openat2(2)).
    init?(beneath folder: Int32, path: String) {
        let file = clinux_open_beneath(folder, path, O_RDONLY | O_CLOEXEC, 0)
        guard file >= 0 else { return nil }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(file)
            return nil
        }
        descriptor = file
        count = Int(status.st_size)
        entityTag = "\"\(String(status.st_mtim.tv_sec, radix: 16))-\(String(status.st_size, radix: 16))\""
    }

    deinit { close(descriptor) }
}

final class OriginFolder: Sendable {
    private let descriptor: Int32

    init?(path: String) {
        descriptor = clinux_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    func response(to request: OriginRequest) -> OriginResponse {
        let path = request.path.utf8.prefix { $0 != UInt8(ascii: "?") }
        guard let name = Self.decode(path.drop { $0 == UInt8(ascii: "/") }), !name.isEmpty,
            let file = OriginFile(beneath: descriptor, path: name)
        else { return OriginResponse(status: 404) }
        var response = OriginResponse(headers: [("Content-Type", Self.type(of: name)), ("ETag", file.entityTag)])
        response.file = file
        return response
    }

    static func decode(_ path: Substring.UTF8View) -> String? {
        var bytes: [UInt8] = []
        var rest = path.makeIterator()
        while let byte = rest.next() {
            var byte = byte
            if byte == UInt8(ascii: "%") {
                guard let high = rest.next().flatMap({ Character(UnicodeScalar($0)).hexDigitValue }),
                    let low = rest.next().flatMap({ Character(UnicodeScalar($0)).hexDigitValue })
                else { return nil }
                byte = UInt8(high << 4 | low)
            }
            guard byte != 0 else { return nil }
            bytes.append(byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func type(of name: String) -> String {
        switch name.split(separator: ".").last.map({ $0.lowercased() }) {
        case "jpg", "jpeg": "image/jpeg"
        case "png": "image/png"
        case "gif": "image/gif"
        case "webp": "image/webp"
        case "svg": "image/svg+xml"
        case "html": "text/html"
        case "txt": "text/plain"
        default: "application/octet-stream"
        }
    }
}
