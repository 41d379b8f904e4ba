/// A cache that has images of a batch: one machine's own, or shared by several.
package struct BatchCache: Sendable, Hashable {
    /// ``CacheDirectory/id``; `-` for a cache without one.
    package let id: String
    /// The machine that reported it first, by `gethostname`.
    package let host: String
    /// Its path on that machine.
    package let directory: String

    package init(id: String, host: String, directory: String) {
        (self.id, self.host, self.directory) = (id, host, directory)
    }

    var place: String { "\(host.replacing(" ", with: "_")) \(directory)" }
}

/// The caches of one batch, by the number in a URL's place byte.
package struct BatchCaches: Sendable {
    /// The highest number; all later caches share it.
    private static let last = 255
    /// Longer names are not paths.
    private static let longestName = 4_096

    private var caches: [Int: BatchCache] = [:]

    package init() {}

    /// * `fields`: the hash that REPORT writes: id -> number, host and directory, separated by blanks.
    package init(fields: [String: String]) {
        for (id, text) in fields {
            let parts = text.prefix(Self.longestName).split(
                atByte: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, let number = Int(parts[0]), (0...Self.last).contains(number) else { continue }
            // Which of the caches sharing the last number is meant is unknown.
            let isShared = caches[number] != nil
            caches[number] =
                isShared
                ? BatchCache(id: "-", host: "several", directory: "")
                : BatchCache(id: String(id.prefix(64)), host: String(parts[1]), directory: String(parts[2]))
        }
    }

    package var count: Int { caches.count }

    /// Nil for an unknown number.
    package subscript(number: UInt8) -> BatchCache? { caches[Int(number)] }

    /// In the order of their first images.
    package var all: [BatchCache] { caches.sorted { $0.key < $1.key }.map(\.value) }
}
