internal import Redis

/// Details of a skipped URL: one line of `failures`. Stored with TABs: `line outcome[/reason] status tries url detail` and its own settings.
package struct FailureDetail: Sendable, Equatable {
    /// Line of the list, from 1.
    package var line: Int
    package var url: String
    package var outcome: PrefetchOutcome
    /// Of the outcome; nil if there is none, or none is known.
    package var reason: FailureReason?
    /// Nil without a response.
    package var httpStatus: Int?
    package var tries: Int
    /// One sentence.
    package var detail: String
    /// Whether Redis has it; if not, `detail` only says so, and nothing is known of a reason.
    package var isKept = true
    /// When it ended, ms since 1970, from the failure's record; nil if unknown.
    package var ended: Int?
    /// The line's own settings, for a retry.
    package var settings: URLSettings?

    package init(
        line: Int, url: String, outcome: PrefetchOutcome, reason: FailureReason? = nil, httpStatus: Int? = nil,
        tries: Int = 0, detail: String, settings: URLSettings? = nil
    ) {
        self.line = line
        self.url = url
        self.outcome = outcome
        self.reason = reason
        self.httpStatus = httpStatus
        self.tries = tries
        self.detail = String(detail.prefix(300))
        self.settings = settings
    }

    package func encoded() -> String {
        "\(line)\t\(outcome.name)\(reason.map { "/\($0.rawValue)" } ?? "")\t\(httpStatus ?? 0)\t\(tries)\t\(url)\t\(detail)"
            + (settings.map { "\t\($0.text)" } ?? "")
    }

    init?(encoded text: String) {
        let parts = text.split(atByte: "\t", maxSplits: 5, omittingEmptySubsequences: false)
        guard parts.count == 6, let line = Int(plausible: parts[0]), !parts[1].isEmpty,
            let status = Int(plausible: parts[2]), let tries = Int(plausible: parts[3])
        else { return nil }
        let kind = parts[1].split(atByte: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let outcome = PrefetchOutcome(name: String(kind[0])) ?? .unknown
        // One of a later version, or that does not go with the outcome, says nothing.
        let reason = kind.count < 2 ? nil : FailureReason(rawValue: String(kind[1]))
        var (detail, settings): (Substring, URLSettings?) = (parts[5], nil)
        if let tab = detail.utf8.lastIndex(of: UInt8(ascii: "\t")),
            case let rest = Substring(detail.utf8[tab...].dropFirst()), rest.utf8.first == UInt8(ascii: "{"),
            let read = URLSettings(text: String(rest))
        {
            (detail, settings) = (detail[..<tab], read)
        }
        self.init(
            line: line, url: String(parts[4]), outcome: outcome,
            reason: reason?.outcome == outcome ? reason : nil, httpStatus: status == 0 ? nil : status,
            tries: tries, detail: String(detail), settings: settings)
    }
}
