internal import Redis

/// One particular batch: an id may be reused after its batch was removed, expired, or was lost with Redis' data.
package struct BatchIdentity: Hashable, Sendable {
    package var id: String
    /// The unique word its OPEN was called with.
    package var nonce: String

    package init(id: String, nonce: String) {
        self.id = id
        self.nonce = nonce
    }

    /// As scripts take it; neither part contains an `@`.
    package var text: String { "\(id)@\(nonce)" }

    /// The URLs of a claim of this batch, by the claim's name in Redis; nil if it is another batch's.
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
