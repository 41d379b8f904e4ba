internal import WebImage

/// A follower's own copy of a batch's outcomes: what it has told. An index that was told is never told again, whatever Redis says of it
/// later; so the count of a follower runs from 1 to n without gap or repeat, also across a Redis that lost its last second.
struct OutcomeCopy {
    /// Indices a piece. Pieces of which every index was told are never read again.
    static let piece = 8_192

    /// One byte an index, 0 = not told.
    private var told: [UInt8] = []
    /// For each piece, how many of its indices are not told.
    private var open: [Int] = []
    /// How many were told.
    private(set) var finished = 0
    /// How many of them ended without an image.
    private(set) var skipped = 0

    /// Makes room for so many indices.
    private mutating func grow(to count: Int) {
        guard count > told.count else { return }
        var at = told.count
        told += repeatElement(0, count: count - told.count)
        while at < count {
            let end = min(count, (at / Self.piece + 1) * Self.piece)
            if open.count == at / Self.piece { open.append(0) }
            open[at / Self.piece] += end - at
            at = end
        }
    }

    /// The pieces below `count` that have an index that was not told.
    mutating func openPieces(below count: Int) -> [Range<Int>] {
        grow(to: count)
        return open.indices.compactMap { index in
            let start = index * Self.piece
            guard open[index] > 0, start < count else { return nil }
            return start..<min(count, start + Self.piece)
        }
    }

    /// Takes over what Redis says of some indices and returns what is new.
    /// * `openAs`: how open ones read, where the batch was cancelled.
    /// - Throws: `software` for a code that does not exist.
    mutating func learn(
        _ codes: [UInt8], of range: Range<Int>, openAs: PrefetchOutcome?
    ) throws(PrefetchError) -> [SettledURL] {
        var new: [SettledURL] = []
        for index in range where told[index] == 0 {
            let position = index - range.lowerBound
            let code = position < codes.count && codes[position] != 0 ? codes[position] : openAs?.rawValue ?? 0
            guard code != 0 else { continue }
            guard let outcome = PrefetchOutcome(code: code) else {
                throw PrefetchError(
                    .software, "URL \(index) has the outcome \(code), which does not exist",
                    hint: "check the batch: prefetch-coord fsck")
            }
            told[index] = code
            open[index / Self.piece] -= 1
            finished += 1
            if outcome.isSkipped { skipped += 1 }
            new.append(SettledURL(index: index, outcome: outcome))
        }
        return new
    }
}

/// One URL of a batch that ended.
package struct SettledURL: Sendable, Equatable {
    /// Its index in the batch, from 0.
    package var index: Int
    /// How it ended.
    package var outcome: PrefetchOutcome
}
