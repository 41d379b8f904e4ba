@testable import PrefetchModel

extension FuzzTarget {
    /// Lines: pattern, replacement, URL.
    static func readPattern(_ bytes: [UInt8]) throws {
        let lines = lines(bytes)
        guard lines.count >= 3, let pattern = try? BytePattern(lines[0]) else { return }
        let url = lines[2]
        // Steps are counted behind each start: the last one may be over.
        let steps = pattern.steps(on: url)
        try claim(steps >= 0 && steps <= 1_100_001, "\(steps) steps")
        let isFound = try? pattern.matches(url)
        guard let filter = try? CacheKeyFilter(replacing: lines[0], with: lines[1]) else { return }
        let key = try? filter.key(for: url)
        if let key {
            try claim(key.utf8.count <= 65_536, "a key of \(key.utf8.count) bytes")
            if isFound == false { try claim(key.utf8.elementsEqual(url.utf8), "another key without a match") }
        }
        // As it is in a batch's record.
        guard let again = try? CacheKeyFilter(text: filter.description) else {
            throw Contradiction(description: "a filter that is not read back: \(filter.description)")
        }
        let same = try? again.key(for: url)
        try claim(
            (same == nil) == (key == nil) && (same ?? "").utf8.elementsEqual((key ?? "").utf8),
            "another key: \(filter.description)")
    }
}
