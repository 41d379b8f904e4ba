internal import WebImage

/// SHA-256 of the beginning of a list, up to the end of any line that is being read.
struct ListDigest {
    private var hash = SHA256()
    /// Bytes that were hashed, and those behind them that were not.
    private var hashed = 0
    private var rest: [UInt8] = []
    private var start = 0

    /// Adds the next bytes of the list.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
        if start > 0 {
            rest.removeFirst(start)
            start = 0
        }
        rest += bytes
    }

    /// Of the first bytes; nil if they were not read, or are before those of an earlier call.
    mutating func hex(upTo end: Int) -> String? {
        let count = end - hashed
        guard count >= 0, count <= rest.count - start else { return nil }
        rest.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0[start..<(start + count)])) }
        (start, hashed) = (start + count, end)
        let copy = hash
        return copy.finalize().hex
    }

    /// Of the first bytes of a file; nil if it is shorter or cannot be read.
    static func hex(ofFile path: String, upTo end: Int) -> String? {
        guard let file = try? ListFile.open(path) else { return nil }
        return OpenedList(file).digest(upTo: end)
    }
}
