internal import WebImage

/// A follower's copy of the outcomes it has reported. An index is reported once, whatever Redis has of it later; so a follower counts from
/// 1 to n without gap or repeat, also if Redis lost its last second.
struct OutcomeCopy {
    /// Indices per piece. A piece that is fully reported is not read again.
    static let piece = 8_192

    /// One byte per index, 0 = not reported.
    private var told: [UInt8] = []
    private var open: [Int] = []
    private(set) var finished = 0
    /// Those without an image.
    private(set) var skipped = 0

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

    mutating func openPieces(below count: Int) -> [Range<Int>] {
        grow(to: count)
        return open.indices.compactMap { index in
            let start = index * Self.piece
            guard open[index] > 0, start < count else { return nil }
            return start..<min(count, start + Self.piece)
        }
    }

    /// Takes over outcomes of some indices from Redis and returns the new ones.
    /// * `openAs`: outcome of open ones, if the batch was cancelled.
    /// - Throws: `software` for an unknown code.
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

package struct SettledURL: Sendable, Equatable {
    /// Index in the batch, from 0.
    package var index: Int
    package var outcome: PrefetchOutcome
}
