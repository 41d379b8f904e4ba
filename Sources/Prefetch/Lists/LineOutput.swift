internal import Glibc
internal import WebImage

/// Writes a list into a folder, under a name with the digest of its bytes. One caller at a time.
final class LineOutput {
    private let file: TemporaryFile
    /// The folder.
    private let path: String
    private let hasher = SHA256Hasher()
    private var buffer: [UInt8] = []
    private(set) var line = 1
    /// The number of the first line of the current part.
    private(set) var first = 1
    private var last: UInt8?
    /// Writes that were no blank lines.
    private(set) var entries = 0

    /// - Throws: `cacheUnavailable` if it cannot be written.
    init(in folder: String) throws(PrefetchError) {
        guard let open = OpenFolder(folder), let file = TemporaryFile(in: open) else {
            throw PrefetchError(
                .cacheUnavailable, "cannot write into \(folder): \(String(cString: strerror(errno)))",
                hint: "choose a folder that this user may write: --cache DIR")
        }
        (self.file, path) = (file, folder)
    }

    func write(_ bytes: ArraySlice<UInt8>) throws(PrefetchError) {
        guard !bytes.isEmpty else { return }
        buffer += bytes
        last = bytes.last
        if bytes.count > 1 { entries += 1 }
        line += bytes.count { $0 == UInt8(ascii: "\n") }
        if buffer.count > 1 << 18 { try flush() }
    }

    /// Adds blank lines until the next line has this number, unless it is past it.
    func skip(to number: Int) throws(PrefetchError) {
        while line < number { try write([UInt8(ascii: "\n")]) }
    }

    /// Ends a line that has no end, so that another list can follow.
    func beginPart() throws(PrefetchError) {
        if let last, last != UInt8(ascii: "\n") { try write([UInt8(ascii: "\n")]) }
        first = line
    }

    /// Gives the list its name, and returns its path.
    /// * `stem`: the beginning of the name; the digest of its bytes follows.
    func publish(stem: String) throws(PrefetchError) -> String {
        try flush()
        let name = "\(stem).\(hasher.finishedHex().prefix(16)).list"
        let code = file.publish(replacing: name)
        guard code == 0 else {
            throw PrefetchError(
                .inputOutput, "cannot write \(path)/\(name): \(String(cString: strerror(code)))",
                hint: "make room in \(path)")
        }
        return "\(path)/\(name)"
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
