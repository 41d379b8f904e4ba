internal import Redis

/// What a worker tells of one of its open URLs with its beat: a line of the field `oldest` of `w:<worker>`. The URL itself stands in the
/// job it has claimed. Times are milliseconds before and after the beat, so that no clock but that of Redis counts.
package struct OpenURLNote: Equatable {
    package var batch: String
    /// Index in the batch.
    package var index: Int
    package var state: OpenURL.State
    /// Milliseconds since its job was claimed.
    package var claimed: Int
    /// Milliseconds since this state began.
    package var elapsed: Int
    /// Milliseconds until it ends, where that is known.
    package var remaining: Int?
    /// Tries begun.
    package var attempt = 0
    /// The host of the hop; empty where none was asked.
    package var host = ""
    /// Why it waits.
    package var detail = ""

    package init(batch: String, index: Int, state: OpenURL.State, claimed: Int, elapsed: Int) {
        self.batch = batch
        self.index = index
        self.state = state
        self.claimed = claimed
        self.elapsed = elapsed
    }

    /// The line: its parts with blanks between, `-` for what is not there, the detail last.
    package var encoded: String {
        let host = Self.clean(host, most: 100).replacing(" ", with: "")
        let numbers = "\(claimed) \(elapsed) \(remaining.map { String($0) } ?? "-") \(attempt)"
        return
            "\(batch) \(index) \(state.rawValue) \(numbers) \(host.isEmpty ? "-" : host) \(Self.clean(detail, most: 100))"
    }

    /// Reads a line; nil for one of another form, as a worker of another version may write it.
    package init?(_ line: Substring) {
        let parts = line.split(separator: " ", maxSplits: 8, omittingEmptySubsequences: false)
        guard parts.count == 9, let index = Int(plausible: parts[1]),
            let state = OpenURL.State(rawValue: String(parts[2])),
            let claimed = Int(plausible: parts[3]), let elapsed = Int(plausible: parts[4]),
            let attempt = Int(plausible: parts[6])
        else { return nil }
        self.init(batch: String(parts[0]), index: index, state: state, claimed: claimed, elapsed: elapsed)
        remaining = Int(plausible: parts[5])
        self.attempt = attempt
        host = parts[7] == "-" ? "" : String(parts[7])
        detail = String(parts[8])
    }

    /// One line of at most so many bytes.
    private static func clean(_ text: String, most: Int) -> String {
        let line = text.replacing("\n", with: " ")
        return line.utf8.count <= most ? line : String(decoding: line.utf8.prefix(most), as: UTF8.self)
    }
}
