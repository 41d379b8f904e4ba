internal import Redis

/// Metadata of a failed URL: `first last count factor next outcome status batch detail`, times in ms since 1970; none for URLs added by hand.
package struct FailedURLEntry: Sendable, Equatable {
    /// First and last failure, ms since 1970; 0 if unknown.
    package var first = 0, last = 0
    /// How often a batch listed it.
    package var count = 0
    /// By which its time to live is multiplied: 1, doubled up to 8 by each request on parole that failed in the same way.
    package var factor = 1
    /// When it lapses: then one request is made for it; 0: never.
    package var next = 0
    package var outcome: PrefetchOutcome?
    package var httpStatus: Int?
    /// The batch that listed it last.
    package var batch = ""
    package var detail = ""

    init(meta: String) {
        // By bytes: finding character boundaries would cost more than the rest of listing a million entries.
        let parts = meta.utf8.split(separator: UInt8(ascii: " "), maxSplits: 8, omittingEmptySubsequences: false)
            .map { Substring($0) }
        guard parts.count == 9 else { return }
        first = Int(plausible: parts[0]) ?? 0
        last = Int(plausible: parts[1]) ?? 0
        count = Int(plausible: parts[2]) ?? 0
        factor = Int(plausible: parts[3]) ?? 1
        next = Int(plausible: parts[4]) ?? 0
        outcome = parts[5].isEmpty ? nil : PrefetchOutcome(name: String(parts[5])) ?? .unknown
        httpStatus = Int(plausible: parts[6]).flatMap { $0 == 0 ? nil : $0 }
        batch = String(parts[7])
        detail = String(parts[8])
    }

    /// Whether it has lapsed: it is on parole until a request for it ends.
    package func isDue(at time: Int) -> Bool { next > 0 && next <= time }
}
