/// Tells from the handshakes of new connections whether the way to most hosts is full: then their packets wait in a queue in front of its
/// narrowest part, and more transfers only make that queue longer.
///
/// LEDBAT (RFC 6817) takes a queue of 100 ms at most for a full way. Round trips of requests say less: a server may delay their
/// acknowledgement by as much. Of one host among many the queue may be its own, so half of the connections have to have one.
struct PathWatch {
    private var delays: [(at: Double, seconds: Double)] = []

    /// Seconds over which handshakes are looked at, and the least of them that say something.
    private static let (window, least) = (4.0, 4)
    /// Seconds of a queue that is too long, for half of the connections.
    private static let long = 0.04

    mutating func clear() { delays = [] }

    /// Whether the way is full.
    /// * `new`: ``TransferSample/delays``
    mutating func add(_ new: [Double], at time: Double) -> Bool {
        delays += new.map { (time, $0) }
        delays.removeAll { $0.at <= time - Self.window }
        guard !new.isEmpty, delays.count >= Self.least else { return false }
        return delays.map(\.seconds).sorted()[delays.count / 2] >= Self.long
    }
}
