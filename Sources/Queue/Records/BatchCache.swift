/// A cache that has images of a batch: a machine's own, or one that several machines share.
package struct BatchCache: Sendable, Hashable {
    /// ``CacheDirectory/id``; `-` of a cache without one.
    package let id: String
    /// The machine that said so first, by `gethostname`.
    package let host: String
    /// Its path on that machine.
    package let directory: String

    package init(id: String, host: String, directory: String) {
        (self.id, self.host, self.directory) = (id, host, directory)
    }

    /// What REPORT keeps behind its number.
    var place: String { "\(host.replacing(" ", with: "_")) \(directory)" }
}

/// The caches of one batch by the number that its byte of a URL has.
package struct BatchCaches: Sendable {
    /// Caches have numbers up to this; all that come after it have it too.
    private static let last = 255
    /// More of a name than this is nobody's path.
    private static let longestName = 4_096

    private var caches: [Int: BatchCache] = [:]

    /// None.
    package init() {}

    /// * `fields`: the hash that REPORT writes: id -> number, host and directory, blanks between.
    package init(fields: [String: String]) {
        for (id, text) in fields {
            let parts = text.prefix(Self.longestName).split(
                separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, let number = Int(parts[0]), (0...Self.last).contains(number) else { continue }
            // Which of those that share the last number it is nobody knows.
            let isShared = caches[number] != nil
            caches[number] =
                isShared
                ? BatchCache(id: "-", host: "several", directory: "")
                : BatchCache(id: String(id.prefix(64)), host: String(parts[1]), directory: String(parts[2]))
        }
    }

    package var count: Int { caches.count }

    /// Nil for a number that nobody has registered.
    package subscript(number: UInt8) -> BatchCache? { caches[Int(number)] }

    /// All of them, in the order of their first images.
    package var all: [BatchCache] { caches.sorted { $0.key < $1.key }.map(\.value) }
}
