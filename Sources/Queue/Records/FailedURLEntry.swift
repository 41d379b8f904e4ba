internal import Redis

/// Metadata of a failed URL: `first last count outcome status batch detail`, times in ms since 1970; none for URLs added by hand.
package struct FailedURLEntry: Sendable, Equatable {
    /// First and last failure, ms since 1970; 0 if unknown.
    package var first = 0, last = 0
    /// How often a batch listed it.
    package var count = 0
    package var outcome: PrefetchOutcome?
    package var httpStatus: Int?
    /// The batch that listed it last.
    package var batch = ""
    package var detail = ""

    init(meta: String) {
        // By bytes: finding character boundaries would cost more than the rest of listing a million entries.
        let parts = meta.utf8.split(separator: UInt8(ascii: " "), maxSplits: 6, omittingEmptySubsequences: false)
            .map { Substring($0) }
        guard parts.count == 7 else { return }
        first = Int(plausible: parts[0]) ?? 0
        last = Int(plausible: parts[1]) ?? 0
        count = Int(plausible: parts[2]) ?? 0
        outcome = parts[3].isEmpty ? nil : PrefetchOutcome(name: String(parts[3])) ?? .unknown
        httpStatus = Int(plausible: parts[4]).flatMap { $0 == 0 ? nil : $0 }
        batch = String(parts[5])
        detail = String(parts[6])
    }
}
