internal import Redis

/// One of the lists of a batch that was submitted open; the batch reads as all of them concatenated.
///
/// In Redis an element of the batch's LIST of lists: `base line total lines hash nonce host path`, separated by blanks.
package struct ListSegment: Sendable, Equatable {
    /// Position among the batch's lists, from 0.
    package var number: Int
    /// Index of its first URL in the batch.
    package var base: Int
    /// Number of lines in the lists before it.
    package var line: Int
    package var total: Int
    package var lines: Int
    /// Hex SHA-256 of its bytes.
    package var hash: String
    /// Of the call that added it.
    var nonce: String
    /// The machine on which ``path`` can be read.
    package var host: String
    package var path: String

    /// Index after its last URL.
    package var end: Int { base + total }

    /// Nil for an invalid element.
    init?(number: Int, element: String) {
        let parts = element.split(atByte: " ", maxSplits: 7, omittingEmptySubsequences: false)
        guard parts.count == 8, let base = Int(plausible: parts[0]), let line = Int(plausible: parts[1]),
            let total = Int(plausible: parts[2]), let lines = Int(plausible: parts[3]),
            base >= 0, line >= 0, total >= 0, lines >= 0
        else { return nil }
        self.number = number
        (self.base, self.line, self.total, self.lines) = (base, line, total, lines)
        (hash, nonce, host, path) = (String(parts[4]), String(parts[5]), String(parts[6]), String(parts[7]))
    }
}
