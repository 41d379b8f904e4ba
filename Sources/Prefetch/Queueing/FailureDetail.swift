package import WebImage

/// What is kept about a skipped URL: one line of `failures`. Stored as TAB-separated fields:
/// `line outcome status attempts url detail`; the SHA-256 that a URL's bytes must have stands behind the attempts and a blank.
package struct FailureDetail: Sendable, Equatable {
    /// Line of the list, from 1.
    package var line: Int
    package var url: String
    package var outcome: PrefetchOutcome
    /// The status code, where a response came.
    package var httpStatus: Int?
    /// Requests made.
    package var attempts: Int
    /// One sentence.
    package var detail: String
    /// SHA-256 that the bytes must have; nil: any.
    package var digest: Digest?

    package init(
        line: Int, url: String, outcome: PrefetchOutcome, httpStatus: Int? = nil, attempts: Int = 0, detail: String,
        digest: Digest? = nil
    ) {
        self.line = line
        self.url = url
        self.outcome = outcome
        self.httpStatus = httpStatus
        self.attempts = attempts
        self.detail = String(detail.prefix(300))
        self.digest = digest
    }

    func encoded() -> String {
        "\(line)\t\(outcome.name)\t\(httpStatus ?? 0)\t\(attempts)\(digest.map { " \($0.hex)" } ?? "")\t\(url)\t\(detail)"
    }

    init?(encoded text: String) {
        let parts = text.split(separator: "\t", maxSplits: 5, omittingEmptySubsequences: false)
        guard parts.count == 6, let line = Int(parts[0]), let outcome = PrefetchOutcome(name: String(parts[1])),
            let status = Int(parts[2]), let attempts = Int(parts[3].prefix { $0 != " " })
        else { return nil }
        let digest = Digest(hex: parts[3].drop { $0 != " " }.dropFirst())
        self.init(
            line: line, url: String(parts[4]), outcome: outcome, httpStatus: status == 0 ? nil : status,
            attempts: attempts, detail: String(parts[5]), digest: digest)
    }
}
