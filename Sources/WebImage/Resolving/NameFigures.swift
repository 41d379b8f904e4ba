/// What a resolver was asked and how it answered, since the start of its session.
package struct NameFigures: Sendable, Equatable {
    /// Queries sent, one for each family of a name and each repetition.
    package var queries = 0
    /// Queries answered with addresses, or with their absence for a name that exists.
    package var answered = 0
    /// NXDOMAIN.
    package var noNames = 0
    /// SERVFAIL, REFUSED, and answers that cannot be read.
    package var failed = 0
    /// Queries without an answer.
    package var unanswered = 0
    /// Look-ups that needed no query.
    package var cacheHits = 0
    /// Queries that may be in flight now.
    package var window = 0
    /// Names that are being asked for.
    package var waiting = 0
    /// For how many seconds the resolver has answered nothing; nil while it answers.
    package var silence: Double?

    package init() {}
}
