internal import Redis

/// One of the lists of a batch that was submitted open: the batch reads as all of them one after the other.
///
/// In Redis an element of the batch's LIST of lists: `base line total lines hash nonce host path`, blanks between.
package struct ListSegment: Sendable, Equatable {
    /// Its place among the batch's lists, from 0.
    package var number: Int
    /// Index of its first URL in the batch.
    package var base: Int
    /// Lines of the lists before it: the first line of this one is the next.
    package var line: Int
    /// Its URLs.
    package var total: Int
    /// Its lines.
    package var lines: Int
    /// Hex SHA-256 of its bytes.
    package var hash: String
    /// The call that added it.
    var nonce: String
    /// The machine on which the path can be read.
    package var host: String
    /// Where it was read.
    package var path: String

    /// Index behind its last URL.
    package var end: Int { base + total }

    /// Reads an element; nil where it is none.
    init?(number: Int, element: String) {
        let parts = element.split(separator: " ", maxSplits: 7, omittingEmptySubsequences: false)
        guard parts.count == 8, let base = Int(plausible: parts[0]), let line = Int(plausible: parts[1]),
            let total = Int(plausible: parts[2]), let lines = Int(plausible: parts[3]),
            base >= 0, line >= 0, total >= 0, lines >= 0
        else { return nil }
        self.number = number
        (self.base, self.line, self.total, self.lines) = (base, line, total, lines)
        (hash, nonce, host, path) = (String(parts[4]), String(parts[5]), String(parts[6]), String(parts[7]))
    }
}
