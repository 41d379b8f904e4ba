internal import DequeModule
internal import Glibc
internal import HeapModule

/// Resolves names: one query for each name and family, however many ask, as many at once as the resolver takes (``QueryWindow``).
///
/// A name ends by its addresses, or by the resolver's own refusal: NXDOMAIN or no address at once; SERVFAIL, or no answer while other names
/// are answered, after repetitions for ``Settings/waitLimit``. A resolver that answers nothing ends no name: all wait until it does.
///
/// Used only on the downloader's thread: ``turn(now:)`` is called whenever a socket is ready or ``nextWake(now:)`` has come.
final class NameResolver {
    struct Settings: Equatable {
        /// Resolvers (``DNSServer``); empty: those of `resolverFile`, a resolv.conf(5).
        var servers: [String] = []
        var resolverFile = "/etc/resolv.conf"
        /// The families to ask for, if the machine has them.
        var families = AddressFamily.allCases
        /// Seconds that a name is asked for while the resolver fails for it; its silence does not count.
        var waitLimit = 30.0
        var hostsFile = "/etc/hosts"
    }

    enum Lookup {
        /// The first one of the addresses that are known.
        case known(IPAddress)
        case refused(WebImageError)
        /// ``turn(now:)`` returns the name when it has ended.
        case waits
    }

    private final class Question {
        let name: CachedName
        let number: Int
        var parts: [Part]
        /// It has ended, or nobody waits for it any more.
        var isForgotten: Bool { name.question != number }

        init(_ name: CachedName, _ number: Int, _ families: [AddressFamily]) {
            (self.name, self.number) = (name, number)
            parts = families.map { Part(family: $0) }
        }
    }

    private struct Part {
        let family: AddressFamily
        var queries = 0
        /// The resolver that was asked last.
        var server: Int?
        /// Failures that say something of the name, and the start of the first.
        var failures = 0, failingSince: Double?
        var end: NameReply?

        var addresses: [IPAddress] {
            if case .addresses(let addresses, _) = end { addresses } else { [] }
        }

        var hasAddresses: Bool {
            if case .addresses = end { true } else { false }
        }
    }

    private struct Flight {
        /// Nil for the witness.
        let question: Question?
        let part: Int
        let ticket: QueryWindow.Ticket
        /// The resolver that was asked.
        var server = 0
        /// Its repetition is due: only an answer counts now.
        var isOverdue = false
        /// The window counts it as lost.
        var isLost = false

        var began: Double { ticket.began }
    }

    private struct Due<Value>: Comparable {
        let time: Double
        let number: Int
        let value: Value

        static func < (one: Self, other: Self) -> Bool { (one.time, one.number) < (other.time, other.number) }
        static func == (one: Self, other: Self) -> Bool { one.number == other.number }
    }

    /// Seconds after which a query is repeated, at the next resolver if there is one.
    static let timeout = 2.0
    /// Seconds for which its answer is taken, repeated or not, as by glibc (resolv.conf(5), `timeout`).
    static let answerTimeout = 5.0
    /// Seconds between two queries for a name that failed, doubled up to the second.
    private static let firstPause = 1.0, longestPause = 8.0
    /// Seconds for which names wait for their query at most, with a resolver that is not slow.
    private static let longWait = 1.0
    /// Queries without an answer after which a name may end, if others are answered.
    private static let fewestUnanswered = 4
    /// Seconds that a query counts as in flight at least, if it could not be sent: otherwise all names would be tried in one turn.
    private static let shortestFailure = 1.0

    private let settings: Settings
    private let servers: Resolvers
    private var window = QueryWindow(timeout: NameResolver.timeout)
    private var witness = NameWitness()
    private var families: LocalFamilies
    private var cache = NameCache()
    private var hosts: HostsFile
    private var askedCount = 0
    /// What waits for its first query, and since when.
    private var ready: Deque<(question: Question, part: Int, since: Double)> = []
    /// What waits for a repetition that is due, and how many repetitions are in flight and not overdue.
    private var again: Deque<(question: Question, part: Int)> = []
    private var repeating = 0
    private var repetitions = Heap<Due<(question: Question, part: Int)>>()
    private var flights: [Int: Flight] = [:]
    /// The queries that are not overdue, in their order; those that were answered are still in it.
    private var recent: Deque<(number: Int, began: Double)> = []
    private var late = Heap<Due<NameReply>>()
    private var nextNumber = 0
    private var ended: [CachedName] = []
    private var counts = NameFigures()

    init(_ settings: Settings, sockets: NameSockets) {
        self.settings = settings
        servers = Resolvers(
            settings.servers, file: settings.resolverFile, timeout: Self.answerTimeout, sockets: sockets)
        families = LocalFamilies(settings.families)
        hosts = HostsFile(path: settings.hostsFile)
    }

    // MARK: Asking

    /// The name as it is kept; ``lookUp(_:now:)`` follows.
    /// * `text`: in lower case, ASCII.
    func name(_ text: String) -> CachedName { cache.name(text) }

    /// Returns what is known of a name, or asks for it.
    func lookUp(_ name: CachedName, now: Double) -> Lookup {
        guard name.question == nil else { return .waits }
        switch name.entry(now: now) ?? local(name, now: now) {
        case .addresses(let addresses):
            counts.cacheHits += 1
            return .known(addresses[0])
        case .refused(let error):
            counts.cacheHits += 1
            return .refused(error)
        case nil: break
        }
        nextNumber += 1
        name.ask(nextNumber)
        askedCount += 1
        let question = Question(name, nextNumber, families.families(now: now))
        for part in question.parts.indices { ready.append((question, part, now)) }
        return .waits
    }

    /// What is known of a name without a resolver.
    private func local(_ name: CachedName, now: Double) -> NameCache.Entry? {
        let bare = name.text.utf8.last == UInt8(ascii: ".") ? String(Substring(name.text.utf8.dropLast())) : name.text
        let entry: NameCache.Entry?
        switch SpecialNames.reply(for: bare) {
        case .addresses(let all, _): entry = usable(all)
        case nil: entry = hosts.addresses(of: bare, now: now).flatMap { usable($0) }
        default: entry = .refused(Self.noName)
        }
        if let entry { cache.keep(entry, of: name, until: now + HostsFile.interval) }
        return entry
    }

    private func usable(_ all: [IPAddress]) -> NameCache.Entry? {
        let usable = all.filter { settings.families.contains($0.isIPv6 ? .v6 : .v4) }
        return usable.isEmpty ? nil : .addresses(Array(usable.prefix(NameChannel.mostAddresses)))
    }

    /// Nobody waits for the name any more.
    func forget(_ name: CachedName) {
        guard name.question != nil else { return }
        name.endQuestion()
        askedCount -= 1
        cache.remove(name)
    }

    func forgetAll() {
        for name in cache.asked { forget(name) }
        ready = []
        again = []
        repetitions = Heap()
    }

    // MARK: Turns

    /// Receives answers and sends queries; returns the names that have ended, of which addresses or a refusal are known now.
    func turn(now: Double) -> [CachedName] {
        for query in servers.takeEnded(now: now) { receive(query.number, query.reply, now: now) }
        while let next = late.min, next.time <= now {
            late.removeMin()
            finish(next.number, next.value, now: now)
        }
        while let oldest = recent.first, oldest.began + Self.timeout <= now {
            recent.removeFirst()
            becomeOverdue(oldest.number, now: now)
        }
        if window.silentSince != nil, servers.renew(now: now) { askAgain(now: now) }
        while let next = repetitions.min, next.time <= now {
            repetitions.removeMin()
            again.append(next.value)
        }
        ask(now: now)
        defer { ended = [] }
        return ended
    }

    private func ask(now: Double) {
        if let (name, family) = witness.take(window, now: now) {
            _ = send(name, family, after: nil, of: nil, part: 0, turn: .later, now: now)
        }
        while window.mayAsk(now: now), let (question, part) = next() {
            guard !question.isForgotten, question.parts[part].end == nil else { continue }
            let asked = question.parts[part]
            question.parts[part].queries += 1
            question.parts[part].server = send(
                question.name.text, asked.family, after: asked.server, of: question, part: part,
                turn: asked.queries == 0 ? .first : asked.queries == 1 ? .second : .later, now: now)
        }
    }

    /// While others wait for their first query, repetitions fill half of the window at most: a bad name is repeated for half a minute.
    private func next() -> (question: Question, part: Int)? {
        if ready.isEmpty || 2 * repeating < window.size, let next = again.popFirst() { return next }
        return ready.popFirst().map { ($0.question, $0.part) }
    }

    /// Returns the resolver that is asked.
    /// * `last`: the one that was asked before.
    private func send(
        _ name: String, _ family: AddressFamily, after last: Int?, of question: Question?, part: Int,
        turn: QueryWindow.Turn, now: Double
    ) -> Int {
        nextNumber += 1
        let number = nextNumber
        counts.queries += 1
        if turn != .first { repeating += 1 }
        let server = servers.ask(name, family, number: number, after: last, now: now)
        flights[number] = Flight(
            question: question, part: part, ticket: window.began(turn, now: now), server: server)
        recent.append((number, now))
        return server
    }

    /// A query without an answer is repeated; its answer may still come. Where answers take that long, they are no sign of a loss.
    private func becomeOverdue(_ number: Int, now: Double) {
        guard var flight = flights[number] else { return }
        flight.isOverdue = true
        counts.unanswered += 1
        leave(flight)
        servers.didNotAnswer(flight.server, since: flight.began)
        if !window.answersLate {
            flight.isLost = true
            window.ended(flight.ticket, .timedOut, now: now)
        }
        flights[number] = flight
        if let question = flight.question { take(.unanswered(""), of: question, flight, now: now) }
    }

    /// All queries were withdrawn.
    private func askAgain(now: Double) {
        for (_, flight) in flights.sorted(by: { $0.key > $1.key }) {
            if !flight.isLost { window.withdrew(flight.ticket) }
            // The repetition of an overdue one waits already.
            if !flight.isOverdue, let question = flight.question { ready.prepend((question, flight.part, now)) }
        }
        (flights, repeating) = ([:], 0)
        recent = []
        late = Heap()
    }

    private func receive(_ number: Int, _ reply: NameReply, now: Double) {
        if case .unanswered = reply, let flight = flights[number], now < flight.began + Self.shortestFailure {
            late.insert(Due(time: flight.began + Self.shortestFailure, number: number, value: reply))
        } else {
            finish(number, reply, now: now)
        }
    }

    /// When ``turn(now:)`` is due; infinity: never by itself.
    func nextWake(now: Double) -> Double {
        var next = min(servers.nextCheck, repetitions.min?.time ?? .infinity, late.min?.time ?? .infinity)
        next = min(next, witness.nextWake(window), recent.first.map { $0.began + Self.timeout } ?? .infinity)
        if !ready.isEmpty || !again.isEmpty { next = min(next, window.mayAsk(now: now) ? now : window.nextTime) }
        return next
    }

    /// Whether the resolver keeps names waiting for long before it is even asked for them.
    func isSlow(now: Double) -> Bool {
        window.silentSince != nil || ready.first.map { now - $0.since > Self.longWait } ?? false
    }

    // MARK: Ends

    private func finish(_ number: Int, _ reply: NameReply, now: Double) {
        guard let flight = flights.removeValue(forKey: number) else { return }
        let end = count(reply, isOverdue: flight.isOverdue)
        if !flight.isOverdue { leave(flight) }
        if !flight.isLost {
            window.ended(flight.ticket, end, now: now)
        } else if end != .timedOut {
            window.wasAnsweredLate(flight.ticket, now: now)
        }
        guard let question = flight.question else { return }
        if case .addresses = reply { witness.wasAnswered(question.name.text, question.parts[flight.part].family) }
        // The repetition of an overdue one waits, or is in flight.
        if flight.isOverdue, end != .answered { return }
        take(reply, of: question, flight, now: now)
    }

    private func leave(_ flight: Flight) { if flight.ticket.turn != .first { repeating -= 1 } }

    private func take(_ reply: NameReply, of question: Question, _ flight: Flight, now: Double) {
        guard !question.isForgotten, question.parts[flight.part].end == nil else { return }
        switch reply {
        case .failed, .unanswered:
            fail(question, flight, reply, isOfName: window.blamesName(flight.ticket), now: now)
        default: question.parts[flight.part].end = reply
        }
        conclude(question, now: now)
    }

    /// * `isOverdue`: counted as unanswered already.
    private func count(_ reply: NameReply, isOverdue: Bool) -> QueryWindow.End {
        switch reply {
        case .addresses, .noAddress, .withdrawn: counts.answered += 1
        case .noName: counts.noNames += 1
        case .failed:
            counts.failed += 1
            return .failed
        case .unanswered:
            if !isOverdue { counts.unanswered += 1 }
            return .timedOut
        }
        return .answered
    }

    /// Repeats the query later, or ends the part.
    private func fail(_ question: Question, _ flight: Flight, _ reply: NameReply, isOfName: Bool, now: Double) {
        var part = question.parts[flight.part]
        defer { question.parts[flight.part] = part }
        var pause = Self.firstPause
        if case .failed = reply, part.queries < servers.count {
            // Another resolver may know it.
            pause = 0
        } else if isOfName {
            let since = part.failingSince ?? flight.began
            part.failingSince = since
            part.failures += 1
            var isOver = now - max(since, window.answersSince) >= settings.waitLimit
            var step = part.failures - 1
            if case .unanswered = reply {
                isOver = isOver && part.failures >= Self.fewestUnanswered
                // Its timeout was a pause already.
                step -= 1
            }
            if isOver {
                part.end = reply
                return
            }
            pause = min(Self.longestPause, Self.firstPause * pow(2, Double(step)))
        }
        // The addresses of the other family are enough.
        if part.queries > 1, question.parts.contains(where: \.hasAddresses) {
            part.end = reply
            return
        }
        nextNumber += 1
        repetitions.insert(Due(time: now + pause, number: nextNumber, value: (question, flight.part)))
    }

    private func conclude(_ question: Question, now: Double) {
        if question.parts.count > 1, question.parts.contains(where: \.hasAddresses) {
            for index in question.parts.indices
            where question.parts[index].end == nil && question.parts[index].queries > 1 {
                question.parts[index].end = .unanswered("")
            }
        }
        guard question.parts.allSatisfy({ $0.end != nil }) else { return }
        question.name.endQuestion()
        askedCount -= 1
        let addresses =
            question.parts.count == 1
            ? question.parts[0].addresses
            : question.parts.sorted { $0.family == .v6 && $1.family == .v4 }.flatMap(\.addresses)
        if addresses.isEmpty {
            cache.keep(Self.refusal(of: question), of: question.name, now: now)
        } else {
            cache.keep(addresses, of: question.name, lifetime: Self.lifetime(of: question), now: now)
        }
        ended.append(question.name)
    }

    /// A family that could not be learned is asked for again soon.
    private static func lifetime(of question: Question) -> Double {
        question.parts.reduce(.infinity) { least, part in
            switch part.end {
            case .addresses(_, let lifetime): min(least, lifetime)
            case .noName, .noAddress: least
            default: 0
            }
        }
    }

    private static let noName = WebImageError(.cannotFindHost, "no such name")

    private static func refusal(of question: Question) -> WebImageError {
        for part in question.parts {
            switch part.end {
            case .failed(let text): return WebImageError(.cannotFindHost, "the resolver fails for this name: \(text)")
            case .unanswered:
                return WebImageError(.cannotFindHost, "the resolver answers for other names, but not for this one")
            default: continue
            }
        }
        let isUnknown = question.parts.contains { $0.end == .noName }
        return isUnknown ? noName : WebImageError(.cannotFindHost, "the name has no address")
    }

    // MARK: Figures

    func figures(now: Double) -> NameFigures {
        var figures = counts
        figures.window = window.size
        figures.waiting = askedCount
        figures.silence = window.silentSince.map { max(0, now - $0) }
        return figures
    }
}
