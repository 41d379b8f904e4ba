/// Decides which connection never lets a call of curl return.
///
/// curl 7.88 reads an HTTP/2 connection until it has something for a transfer, or until nothing is left to read. A server that sends empty
/// DATA frames or WINDOW_UPDATE frames without an end is read without an end, and with it ends all else that the thread does. Which
/// connection it is does not follow from the socket that curl was given: a call also runs whatever timers are due. It follows from the bytes: the
/// one out of which most of them were taken, at each check.
///
/// Without clock, thread or socket of its own.
struct FloodWatch {
    /// Processor time of the thread in one call after which the connection is shut down: a slow or stopped process takes none. A call reads
    /// at most 100 buffers of one transfer, a few milliseconds of work.
    static let mostTime = Duration.seconds(2)
    /// Processor time between two checks of the connections.
    static let interval = Duration.milliseconds(400)
    /// In so many intervals at least.
    private static let leastChecks = 3

    /// The call of the last check, and the thread's time then.
    private var call: UInt64?
    private var began = Duration.zero
    private var checkedAt = Duration.zero
    private var taken: [UInt64: Int64]?
    /// The connection that was read most in the last interval, and in how many before it.
    private var suspect: UInt64?
    private var checks = 0

    /// * `call`: number of the call that the thread is in; nil: it is in none.
    /// * `time`: the thread's processor time.
    /// * `read`: bytes taken out of each connection so far. Costs two system calls for each, so only a call that goes on is looked at.
    /// - Returns: a connection that must be shut down.
    mutating func check(call: UInt64?, time: Duration, read: () -> [UInt64: Int64]) -> UInt64? {
        guard let call, call == self.call else {
            self = FloodWatch()
            (self.call, began, checkedAt) = (call, time, time)
            return nil
        }
        guard time - checkedAt >= Self.interval else { return nil }
        let now = read()
        let most = taken.flatMap { Self.most(now, since: $0) }
        checks = most != nil && most == suspect ? checks + 1 : most == nil ? 0 : 1
        (taken, suspect, checkedAt) = (now, most, time)
        guard let suspect, checks >= Self.leastChecks, time - began >= Self.mostTime else { return nil }
        // It may read another one from now on.
        (self.suspect, checks, began) = (nil, 0, time)
        return suspect
    }

    /// The connection with more than half of all bytes.
    private static func most(_ now: [UInt64: Int64], since last: [UInt64: Int64]) -> UInt64? {
        var (all, most, suspect) = (Int64(0), Int64(0), UInt64?.none)
        for (connection, bytes) in now {
            guard let before = last[connection], bytes > before else { continue }
            all += bytes - before
            if bytes - before > most { (most, suspect) = (bytes - before, connection) }
        }
        return most > all / 2 ? suspect : nil
    }
}
