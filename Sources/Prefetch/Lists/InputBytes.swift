internal import CZlib
internal import Glibc

/// The bytes of a file in pieces, what gzip packed unpacked: by the first two bytes, never by the name (RFC 1952). Several packed files behind
/// each other are one.
struct InputBytes: ~Copyable {
    /// As it was named.
    let path: String
    private let file: gzFile
    private var buffer = [UInt8](repeating: 0, count: 1 << 17)

    /// - Throws: `notFound`, `unreadableList` with the reason, also for what can be read only once: each list is read twice.
    init(path: String) throws(PrefetchError) {
        self.path = path
        try ListFile.requireRepeatable(path)
        let descriptor = try ListFile.open(path)
        guard let file = gzdopen(descriptor, "rb") else {
            close(descriptor)
            throw PrefetchError(.inputOutput, "cannot read \(path): no memory to unpack it")
        }
        self.file = file
        gzbuffer(file, 1 << 17)
    }

    deinit { gzclose_r(file) }

    /// Whether it is packed; known once something was read.
    var isPacked: Bool { gzdirect(file) == 0 }

    /// The next piece; empty at the end.
    /// - Throws: `unreadableList` where it cannot be read, or was cut or damaged since it was packed.
    mutating func next() throws(PrefetchError) -> ArraySlice<UInt8> {
        let count = buffer.withUnsafeMutableBytes { gzread(file, $0.baseAddress, UInt32($0.count)) }
        var code: Int32 = 0
        // zlib puts what it calls the file before it, which is the number of a descriptor.
        let said = gzerror(file, &code).map { String(cString: $0) } ?? ""
        let reason = said.hasPrefix("<fd:") ? String(said.drop { $0 != " " }.dropFirst()) : said
        // A file that was cut off gives what there is of it and says so at its end.
        guard count >= 0, code == Z_OK || code == Z_STREAM_END else {
            throw PrefetchError(
                .unreadableList, "cannot read \(path): \(code == Z_ERRNO ? String(cString: strerror(errno)) : reason)",
                hint: isPacked
                    ? "it is damaged or not whole: gzip -t \(path)"
                    : "give a text file with one URL a line, or - for standard input")
        }
        return buffer[..<Int(count)]
    }
}
