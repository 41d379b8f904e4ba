internal import Redis

/// One batch, not whichever has its name now: a name may be used again after its batch was removed, expired, or lost with Redis' data.
package struct BatchIdentity: Hashable, Sendable {
    /// Its name.
    package var id: String
    /// The word that its OPEN was called with, and no other.
    package var nonce: String

    package init(id: String, nonce: String) {
        self.id = id
        self.nonce = nonce
    }

    /// As scripts take it; neither part has an `@`.
    var text: String { "\(id)@\(nonce)" }

    /// The URLs of a claim of this batch, by its name in Redis; nil where it is another batch's.
    package func range(ofClaim name: String) -> (base: Int, count: Int)? {
        let halves = name.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
        let parts = halves[0].split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == id, halves.count == 2, halves[1] == nonce,
            let base = Int(plausible: parts[1]), let count = Int(plausible: parts[2]), base >= 0,
            (1...PrefetchJob.maxCount).contains(count)
        else { return nil }
        return (base, count)
    }
}
