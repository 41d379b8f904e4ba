internal import Redis

/// What stands beside a member of the set of failed URLs: `first last count outcome status batch detail`, blanks between, times in
/// ms since 1970. A member that somebody added by hand has nothing there.
package struct FailedURLEntry: Sendable, Equatable {
    /// First and last failure, ms since 1970; 0 where unknown.
    package var first = 0, last = 0
    /// How often a batch listed it.
    package var count = 0
    /// How it ended.
    package var outcome: PrefetchOutcome?
    /// The status code, where there was one.
    package var httpStatus: Int?
    /// The batch that listed it last.
    package var batch = ""
    /// The sentence.
    package var detail = ""

    init(meta: String) {
        // By bytes: a look for each character's end would cost more than all the rest of listing a million of them.
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
