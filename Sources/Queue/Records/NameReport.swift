internal import Redis

/// What a worker's resolver was asked and how it answered, since the worker's start: the field `names` of its record, numbers with blanks
/// between.
package struct NameReport: Sendable, Equatable {
    /// Queries sent.
    package var queries = 0
    /// Of the queries: answered with addresses or their absence, with NXDOMAIN, with SERVFAIL and the like, and not at all.
    package var answered = 0, noNames = 0, failed = 0, unanswered = 0
    /// Look-ups that needed no query.
    package var cacheHits = 0
    /// Queries that may be in flight now, and names that are being asked for.
    package var window = 0, waiting = 0
    /// Milliseconds for which the resolver has answered nothing; 0 while it answers.
    package var silence = 0

    package init() {}

    private static let members: [any WritableKeyPath<NameReport, Int> & Sendable] = [
        \.queries, \.answered, \.noNames, \.failed, \.unanswered, \.cacheHits, \.window, \.waiting, \.silence,
    ]

    /// Nil for anything else than ``text``.
    package init?(_ text: String) {
        let numbers = text.split(separator: " ").map { Int(plausible: $0) }
        guard numbers.count == Self.members.count else { return nil }
        for (member, number) in zip(Self.members, numbers) {
            guard let number else { return nil }
            self[keyPath: member] = max(0, number)
        }
    }

    package var text: String { Self.members.map { String(self[keyPath: $0]) }.joined(separator: " ") }

    /// The sum; the longest silence.
    package static func + (one: NameReport, other: NameReport) -> NameReport {
        var sum = one
        for member in members { sum[keyPath: member] += other[keyPath: member] }
        sum.silence = max(one.silence, other.silence)
        return sum
    }
}
