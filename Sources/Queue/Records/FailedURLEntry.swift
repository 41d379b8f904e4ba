internal import Redis

/// Details of a failed URL: `first last count next outcome status batch detail`, times in ms since 1970; none for URLs added by hand.
package struct FailedURLEntry: Sendable, Equatable {
    /// First and last failure, ms since 1970; 0 if unknown.
    package var first = 0, last = 0
    /// How often a batch listed it.
    package var count = 0
    /// When it lapses: from then on it is requested again; 0: never.
    package var next = 0
    package var outcome: PrefetchOutcome?
    package var httpStatus: Int?
    /// The batch that listed it last.
    package var batch = ""
    package var detail = ""

    init(meta: String) {
        // By bytes: finding character boundaries would cost more than the rest of listing a million entries.
        let parts = meta.utf8.split(separator: UInt8(ascii: " "), maxSplits: 7, omittingEmptySubsequences: false)
            .map { Substring($0) }
        guard parts.count == 8 else { return }
        first = Int(plausible: parts[0]) ?? 0
        last = Int(plausible: parts[1]) ?? 0
        count = Int(plausible: parts[2]) ?? 0
        next = Int(plausible: parts[3]) ?? 0
        outcome = parts[4].isEmpty ? nil : PrefetchOutcome(name: String(parts[4])) ?? .unknown
        httpStatus = Int(plausible: parts[5]).flatMap { $0 == 0 ? nil : $0 }
        batch = String(parts[6])
        detail = String(parts[7])
    }

    /// Whether it has lapsed at a time of Redis, in ms since 1970.
    /// * `ttl`: of who asks; it lapses by this or by the time to live of the batch that listed it, whichever is earlier.
    package func hasLapsed(at time: Int, for ttl: BlacklistTTL? = nil) -> Bool {
        let own = outcome.flatMap { ttl?.milliseconds($0, httpStatus: httpStatus) } ?? 0
        return (next > 0 && next <= time) || (own > 0 && last + own <= time)
    }
}
