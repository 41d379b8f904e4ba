internal import Glibc
internal import WebImage

/// The beginning of a list as a list of its own: its hash, and with it its batch, is another than that of the whole list.
package enum ListHead {
    /// Copies a list up to and with an entry; line numbers stay the same. Returns the copy's path, or nil if the list has no more entries.
    ///
    /// * `count`: entries, at least 1.
    /// * `stem`: the beginning of the copy's name; the digest of its bytes follows.
    /// - Throws: `notFound`, `unreadableList`; `inputOutput`, `cacheUnavailable` if it cannot be written.
    package static func copy(
        _ path: String, entries count: Int, into folder: String, stem: String
    ) throws(PrefetchError) -> String? {
        guard let end = try end(path, count) else { return nil }
        let output = try LineOutput(in: folder)
        var bytes = try InputBytes(path: path)
        var left = end
        while left > 0, case let piece = try bytes.next(), !piece.isEmpty {
            try output.write(piece.prefix(left))
            left -= piece.prefix(left).count
        }
        return try output.publish(stem: stem)
    }

    /// The byte behind the last entry that is wanted; nil if all are.
    private static func end(_ path: String, _ count: Int) throws(PrefetchError) -> Int? {
        var reader = try LineReader(path: path)
        var seen = 0
        while let line = try reader.next() {
            guard URLList.isEntry(line) else { continue }
            if seen == count { return reader.lineOffset }
            seen += 1
        }
        return nil
    }
}
