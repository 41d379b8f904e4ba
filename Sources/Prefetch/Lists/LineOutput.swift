internal import Glibc
internal import WebImage

/// Writes a list and computes its digest. One caller at a time.
final class LineOutput {
    private let file: TemporaryFile
    private let path: String
    private let hasher = SHA256Hasher()
    private var buffer: [UInt8] = []
    private var line = 1

    init(file: TemporaryFile, path: String) { (self.file, self.path) = (file, path) }

    func write(_ bytes: ArraySlice<UInt8>) throws(PrefetchError) {
        buffer += bytes
        line += bytes.count { $0 == UInt8(ascii: "\n") }
        if buffer.count > 1 << 18 { try flush() }
    }

    /// Adds blank lines until the next line has this number, unless it is past it.
    func skip(to number: Int) throws(PrefetchError) {
        while line < number { try write([UInt8(ascii: "\n")]) }
    }

    /// Flushes; returns the hex SHA-256 of everything.
    func finish() throws(PrefetchError) -> String {
        try flush()
        return hasher.finishedHex()
    }

    private func flush() throws(PrefetchError) {
        buffer.withUnsafeBytes { hasher.update($0) }
        let code = OpenFile.write(buffer, to: file.descriptor)
        guard code == 0 else {
            throw PrefetchError(
                .inputOutput, "cannot write the list into \(path): \(String(cString: strerror(code)))",
                hint: "make room in \(path)")
        }
        buffer.removeAll(keepingCapacity: true)
    }
}
