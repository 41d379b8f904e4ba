/// URLs by index, concatenated in memory: for lists without a file.
struct PackedURLs {
    private var bytes: [UInt8] = []
    private var ends: [Int] = []

    mutating func append(_ url: String) {
        bytes += url.utf8
        ends.append(bytes.count)
    }

    /// Nil past the last.
    subscript(index: Int) -> String? {
        guard ends.indices.contains(index) else { return nil }
        return String(decoding: bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]], as: UTF8.self)
    }
}
