internal import FoundationEssentials
internal import Glibc
internal import WebImage

/// Writes a list from memory to a file, so that it can be fed, and read by other followers of the batch.
enum ListSpool {
    /// Writes one line per URL.
    /// * `folder`: nil: TMPDIR, or `/tmp`.
    /// - Throws: `inputOutput` if the file cannot be written.
    static func write(_ urls: [String], into folder: String?) throws(PrefetchError) -> URLList {
        let directory = folder ?? ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        let path = "\(directory)/list-\(getpid())-\(UInt64.random(in: 0...UInt64.max)).txt"
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failure(path) }
        defer { close(file) }
        let hasher = SHA256Hasher()
        var buffer: [UInt8] = []
        var size = 0
        func flush() throws(PrefetchError) {
            buffer.withUnsafeBytes { hasher.update($0) }
            size += buffer.count
            var rest = buffer[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    let error = failure(path)
                    unlink(path)
                    throw error
                }
                rest = rest.dropFirst(count)
            }
            buffer.removeAll(keepingCapacity: true)
        }
        for url in urls {
            buffer += line(url)
            buffer.append(UInt8(ascii: "\n"))
            if buffer.count > 1 << 18 { try flush() }
        }
        try flush()
        var list = URLList(path: path, total: urls.count, hash: hasher.finishedHex())
        (list.mark, list.bytes) = (FileMark(path: path), size)
        return list
    }

    /// The line of a URL. A URL that would make no entry, or two, is written as one invalid URL: every URL has to count.
    private static func line(_ url: String) -> [UInt8] {
        let mark: UInt8 = 0x0B
        var bytes = Array(url.utf8)
        let first = bytes.first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") && $0 != UInt8(ascii: "\r") }
        if bytes.contains(UInt8(ascii: "\n")) {
            bytes = bytes.map { $0 == UInt8(ascii: "\n") ? mark : $0 }
        } else if first == nil || first == UInt8(ascii: "#") {
            bytes.insert(mark, at: 0)
        }
        return bytes
    }

    private static func failure(_ path: String) -> PrefetchError {
        PrefetchError(
            .inputOutput, "cannot write the list \(path): \(String(cString: strerror(errno)))",
            hint: "make room, or choose another folder for lists")
    }
}
