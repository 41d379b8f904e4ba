internal import Redis

/// A worker's note on one of its open URLs, sent with the heartbeat: a line of the field `oldest` of `w:<worker>`. The URL itself is in the
/// claimed job. Times are milliseconds relative to the heartbeat, so that only the clock of Redis counts.
package struct OpenURLNote: Equatable {
    package var batch: String
    /// Index in the batch.
    package var index: Int
    package var state: OpenURL.State
    /// Milliseconds since its job was claimed.
    package var claimed: Int
    /// Milliseconds since this state began.
    package var elapsed: Int
    /// Milliseconds until it ends, if known.
    package var remaining: Int?
    package var tries = 0
    /// Host of the current hop; empty without a request.
    package var host = ""
    package var detail = ""

    package init(batch: String, index: Int, state: OpenURL.State, claimed: Int, elapsed: Int) {
        self.batch = batch
        self.index = index
        self.state = state
        self.claimed = claimed
        self.elapsed = elapsed
    }

    /// The parts separated by blanks, `-` for missing ones, the detail last.
    package var encoded: String {
        let host = String(decoding: host.utf8.prefix(100).filter { $0 > 0x20 }, as: UTF8.self)
        let numbers = "\(claimed) \(elapsed) \(remaining.map { String($0) } ?? "-") \(tries)"
        return
            "\(batch) \(index) \(state.rawValue) \(numbers) \(host.isEmpty ? "-" : host) \(Self.clean(detail, most: 100))"
    }

    /// Nil for another form, such as that of another version.
    package init?(_ line: Substring) {
        let parts = line.split(atByte: " ", maxSplits: 8, omittingEmptySubsequences: false)
        guard parts.count == 9, let index = Int(plausible: parts[1]),
            let state = OpenURL.State(rawValue: String(parts[2])),
            let claimed = Int(plausible: parts[3]), let elapsed = Int(plausible: parts[4]),
            let tries = Int(plausible: parts[6])
        else { return nil }
        self.init(batch: String(parts[0]), index: index, state: state, claimed: claimed, elapsed: elapsed)
        remaining = Int(plausible: parts[5])
        self.tries = tries
        host = parts[7] == "-" ? "" : String(parts[7])
        detail = String(parts[8])
    }

    /// Its first bytes, without line breaks.
    private static func clean(_ text: String, most: Int) -> String {
        String(decoding: text.utf8.prefix(most).map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }, as: UTF8.self)
    }
}
