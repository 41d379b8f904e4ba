internal import DequeModule

/// How many queries a resolver is sent at once: additive increase, multiplicative decrease. A value without clock or socket; times are
/// seconds of any clock that does not step.
///
/// A resolver that takes no more drops queries, which shows two seconds later, as their timeout. So the queries that were sent together
/// are judged together, as a cohort about as large as the window, and one of a level that was left already counts no more. Only the first
/// query for each name counts: a name that is bad by itself fails again, and how many do tells what part of the failures is the list's. After a
/// decrease the window keeps its size until the timeouts of that level can have come, then returns to a part of the level that failed, as CUBIC
/// (RFC 9438) does, and ten seconds later goes beyond.
struct QueryWindow {
    /// How a query ended.
    enum End {
        /// By an answer: addresses, or that there are none.
        case answered
        /// By SERVFAIL, REFUSED or an answer that cannot be read.
        case failed
        case timedOut
    }

    /// Which query for its name and family it is.
    enum Turn {
        case first, second, later
    }

    /// A query in flight, from ``began(_:now:)``.
    struct Ticket: Equatable {
        fileprivate let number: Int
        let turn: Turn
        let began: Double
        /// Nil if it is not judged.
        fileprivate let cohort: Int?
    }

    private struct Cohort {
        var size = 0.0, failures = 0
        var share: Double { Double(failures) / max(size, QueryWindow.smallestCohort) }
    }

    static let most = 256
    /// Seconds without any answer after which a resolver is silent, if at least ``fewestTimeouts`` queries have timed out.
    static let silence = 5.0
    private static let fewestTimeouts = 3
    private static let initial = 4.0
    private static let decrease = 0.7
    /// The share of failures that is too much. Of the names in lists of the open web some three in a hundred fail by themselves.
    private static let tooMany = 0.1
    private static let fewestFailures = 3
    private static let smallestCohort = 24.0
    /// The part of the level that failed to which the window returns, and seconds after which it goes beyond.
    private static let plateau = 0.75, plateauTime = 10.0
    private static let probeInterval = 1.0
    /// Seconds of the usual answer beyond which an answer after the timeout is no exception.
    private static let slowAnswer = 1.0
    /// The least weight of a second query in the share of those that fail again.
    private static let failingAgainWeight = 1.0 / 16
    /// The share of names failing again below which the resolver is taken to drop queries.
    private static let mostlyAgain = 0.5

    /// Seconds until a query times out.
    private let timeout: Double
    private var limit = Self.initial
    private var startsSlowly = true
    /// The level of the last decrease.
    private var failedLevel = Double.infinity
    /// Time of the last decrease, or of the end of the last silence.
    private var levelSince = -Double.infinity
    /// The cohorts of this level; the last one grows.
    private var cohorts: Deque<Cohort> = []
    /// The number of the first one.
    private var firstCohort = 0
    /// Queries in flight, in their order.
    private var flying: Deque<Ticket> = []
    /// The most queries in flight since there was none.
    private var peak = 0
    private var nextNumber = 0
    private var latency: Double?
    private var hasTimedOut = false
    /// The share of names that failed and then fail again, and how many second queries have told.
    private var failingAgain = 0.0, secondQueries = 0.0
    /// The failures for which the window was made smaller last; nil once that is known to have been wrong.
    private var blamed: Cohort?
    /// Since when an answer is due: the last one, or the first query after a time without any.
    private var dueSince = 0.0
    private var timeoutsSinceAnswer = 0
    private var endedAt = -Double.infinity
    private var nextProbe = 0.0
    /// When the last answer came, whatever it said.
    private(set) var answeredAt = -Double.infinity
    /// Since when the resolver has answered nothing; nil while it answers.
    private(set) var silentSince: Double?
    /// When the last silence ended: a name's timeout counts from then, since nothing was learned of it before.
    private(set) var answersSince = -Double.infinity

    init(timeout: Double = 2) { self.timeout = timeout }

    /// Whether answers usually take so long that one may come after the timeout.
    var answersLate: Bool { latency.map { $0 > Self.slowAnswer } ?? false }

    /// Queries that may be in flight.
    var size: Int { silentSince == nil ? Int(limit) : 1 }
    var inFlight: Int { flying.count }
    /// Since when an answer is due; nil if none is.
    var waitsSince: Double? { flying.isEmpty && silentSince == nil ? nil : dueSince }

    /// Whether a query may be sent now. A silent resolver gets one a second.
    func mayAsk(now: Double) -> Bool {
        silentSince == nil ? flying.count < Int(limit) : now >= nextProbe
    }

    /// When ``mayAsk(now:)`` becomes true without the end of a query; infinity: not by itself.
    var nextTime: Double { silentSince == nil ? .infinity : nextProbe }

    /// A query is sent.
    mutating func began(_ turn: Turn, now: Double) -> Ticket {
        if flying.isEmpty, timeoutsSinceAnswer == 0 || now - endedAt >= Self.silence {
            (dueSince, timeoutsSinceAnswer) = (now, 0)
        }
        if turn == .first {
            let isFull = cohorts.last.map { $0.size >= max(limit, Self.smallestCohort) } ?? true
            if isFull { cohorts.append(Cohort()) }
            cohorts[cohorts.count - 1].size += 1
            // Those before the timeout have ended.
            if cohorts.count > Self.most {
                cohorts.removeFirst()
                firstCohort += 1
            }
        }
        nextNumber += 1
        let cohort = turn == .first ? firstCohort + cohorts.count - 1 : nil
        let ticket = Ticket(number: nextNumber, turn: turn, began: now, cohort: cohort)
        flying.append(ticket)
        peak = max(peak, flying.count)
        if silentSince != nil { nextProbe = now + Self.probeInterval }
        return ticket
    }

    /// Whether a query that failed says something of its name: not if nothing was answered since, and not if its level was left since,
    /// because the resolver may have dropped it with others.
    func blamesName(_ ticket: Ticket) -> Bool { answeredAt > ticket.began && ticket.began >= levelSince }

    /// A query was withdrawn, which says nothing.
    mutating func withdrew(_ ticket: Ticket) { remove(ticket) }

    mutating func ended(_ ticket: Ticket, _ end: End, now: Double) {
        let isLimiting = silentSince == nil && isFilled
        remove(ticket)
        endedAt = now
        if ticket.turn == .second, silentSince == nil {
            secondQueries += 1
            // At the start each counts for as much as those before it.
            let weight = max(Self.failingAgainWeight, 1 / (secondQueries + 1))
            failingAgain += weight * ((end == .answered ? 0 : 1) - failingAgain)
            if let blamed, !hasTooMany(blamed) { grow(anew: now) }
        }
        if end == .timedOut {
            timeoutsSinceAnswer += 1
            if ticket.began >= levelSince { hasTimedOut = true }
            if silentSince == nil, timeoutsSinceAnswer >= Self.fewestTimeouts, now - dueSince >= Self.silence {
                silentSince = dueSince
                nextProbe = now + Self.probeInterval
                return
            }
        } else {
            didAnswer(after: now - ticket.began, now: now)
        }
        if end == .answered {
            if isLimiting { grow(now: now) }
        } else {
            didFail(ticket, now: now)
        }
    }

    /// An answer has come to a query that ended as timed out. If answers are that late as a rule, none was lost: the window starts anew.
    mutating func wasAnsweredLate(_ ticket: Ticket, now: Double) {
        let (wereLate, wasSilent) = (answersLate, silentSince != nil)
        didAnswer(after: now - ticket.began, now: now)
        if answersLate, !wereLate, !wasSilent { start(now: now) }
    }

    /// Whether a larger window would be used. At the start all answers of a full window count, which often come at once; so the window may
    /// become twice as large as what it held, as in Linux (tcp_is_cwnd_limited).
    private var isFilled: Bool { startsSlowly ? limit < Double(2 * peak) : flying.count >= Int(limit) - 1 }

    private mutating func didAnswer(after seconds: Double, now: Double) {
        answeredAt = now
        (dueSince, timeoutsSinceAnswer) = (now, 0)
        latency = latency.map { $0 + (seconds - $0) / 8 } ?? seconds
        guard silentSince != nil else { return }
        (silentSince, answersSince) = (nil, now)
        start(now: now)
    }

    private mutating func start(now: Double) {
        limit = Self.initial
        grow(anew: now)
    }

    private mutating func didFail(_ ticket: Ticket, now: Double) {
        guard let number = ticket.cohort, number >= firstCohort else { return }
        cohorts[number - firstCohort].failures += 1
        let cohort = cohorts[number - firstCohort]
        // A cohort of a much smaller window was sent at the start, where one more or less counts for much.
        guard cohort.size >= limit / 2, cohort.failures >= Self.fewestFailures, hasTooMany(cohort) else { return }
        shrink(after: cohort, number, now: now)
        blamed = cohort
    }

    /// Whether it has more failures than the resolver is allowed and bad names explain. These are not spread evenly: a small cohort may have
    /// more of them, by twice their standard deviation.
    private func hasTooMany(_ cohort: Cohort) -> Bool {
        let bad = badShare(of: cohort.share)
        let deviation = (bad * (1 - bad) / max(cohort.size, Self.smallestCohort)).squareRoot()
        return cohort.share > Self.tooMany + bad + 2 * deviation
    }

    /// Of a share of names that fail, those that are bad by themselves. A resolver that drops a share of all queries drops the same share of
    /// those that are repeated, so that of the failures as many fail again; of bad names all do.
    private func badShare(of failing: Double) -> Double {
        failing >= 1 || failingAgain < Self.mostlyAgain ? 0 : failing * max(0, failingAgain - failing) / (1 - failing)
    }

    /// The failures were not of this level, as it turns out.
    private mutating func grow(anew now: Double) {
        (startsSlowly, failedLevel, hasTimedOut, blamed) = (true, .infinity, false, nil)
        beginLevel(now: now)
    }

    /// Far beyond what the resolver takes most queries of a cohort are lost: then those that are not are the measure. Of the queries in flight
    /// they are not, since one that is lost stays so for much longer than others take.
    private mutating func shrink(after cohort: Cohort, _ number: Int, now: Double) {
        let lost = Double(cohort.failures + lostCount(ofCohort: number, now: now))
        let alive = limit * max(0, 1 - lost / max(cohort.size, 1))
        limit = max(1, min(limit * Self.decrease, 1.5 * alive + 1))
        (failedLevel, startsSlowly) = (limit / Self.decrease, false)
        beginLevel(now: now)
    }

    /// What was sent before says nothing of the window from now on.
    private mutating func beginLevel(now: Double) {
        levelSince = now
        firstCohort += cohorts.count
        cohorts.removeAll(keepingCapacity: true)
    }

    private mutating func grow(now: Double) {
        if startsSlowly {
            // Before the first timeout can have come, old queries in flight show that the resolver drops some.
            if hasTimedOut || lostCount(now: now) <= max(1, flying.count / 8) { limit += 1 }
        } else {
            let since = now - levelSince
            guard since >= timeout + 0.5 else { return }
            let beyond = max(0, since - Self.plateauTime)
            let goal = Self.plateau * failedLevel + beyond * beyond / 8
            if limit < goal { limit = min(limit + 1, goal) }
        }
        limit = min(limit, Double(Self.most))
    }

    /// Queries in flight that are so much older than answers are that they are probably lost.
    private func lostCount(ofCohort number: Int? = nil, now: Double) -> Int {
        guard let latency else { return 0 }
        let oldest = now - (3 * latency + 0.05)
        return flying.prefix { $0.began < oldest }.count { number == nil || $0.cohort == number }
    }

    private mutating func remove(_ ticket: Ticket) {
        if let index = flying.firstIndex(where: { $0.number == ticket.number }) { flying.remove(at: index) }
        if flying.isEmpty { peak = 0 }
    }
}
