/// The end of one query: for the addresses of one family of a name.
enum NameReply: Equatable {
    /// Seconds that the resolver lets the answer be kept.
    case addresses([IPAddress], lifetime: Double)
    /// NXDOMAIN: there is no such name.
    case noName
    /// The name exists, without an address of this family.
    case noAddress
    /// SERVFAIL, REFUSED, or an answer that cannot be read.
    case failed(String)
    /// No answer came, or the resolver could not be reached.
    case unanswered(String)
    /// The query was withdrawn by this program.
    case withdrawn
}

/// The family of addresses that a query asks for.
enum AddressFamily: CaseIterable {
    case v4, v6
}
