import Glibc

@testable import WebImage

/// A resolver and the windows of the processes that share it, by a clock of its own.
struct ResolverSimulation {
    /// What names are like, and what the resolver takes.
    struct World {
        /// Names of each window.
        var names = 1
        var windows = 1
        /// Answers per second, and queries that wait; nil: no limit.
        var capacity: Double?, queue = 10
        /// Seconds of an answer.
        var latency: @Sendable (inout Random) -> Double = { _ in 0.005 }
        /// Shares of queries that get SERVFAIL, and of names that are never answered.
        var failures = 0.0, dead = 0.0
        /// The resolver answers nothing then.
        var outage: Range<Double>?
        /// Seconds after the first failure in which a name is asked for.
        var waitLimit = 30.0
    }

    struct Result {
        var queries = 0, answered = 0, givenUp = 0
        /// When the last name ended, and how many were answered by a time.
        var end = 0.0
        var answers: [Double] = []
        /// The windows' sum after each end of a query.
        var sizes: [(time: Double, size: Int)] = []
        var silences: [Double] = []

        func answered(by time: Double) -> Int { answers.count { $0 <= time } }
    }

    struct Random {
        private var state: UInt64
        init(seed: UInt64) { state = seed }
        mutating func next() -> Double {
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return Double((mixed ^ (mixed >> 31)) >> 11) / Double(1 << 53)
        }
        mutating func logNormal(median: Double, sigma: Double) -> Double {
            median * exp(sigma * (-2 * log(max(next(), 1e-12))).squareRoot() * cos(2 * .pi * next()))
        }
    }

    private struct Name {
        var isDead: Bool
        var isAnswered = false
        var queries = 0, failures = 0
        var failingSince: Double?
    }

    private enum Event {
        case ends(window: Int, name: Int, query: Int, ticket: QueryWindow.Ticket, end: QueryWindow.End)
        case isOverdue(window: Int, name: Int, query: Int, ticket: QueryWindow.Ticket)
        case again(window: Int, name: Int)
        case checks(window: Int)
        case witnesses(window: Int, ticket: QueryWindow.Ticket, end: QueryWindow.End)
    }

    private struct Entry {
        let time: Double
        let event: Event
    }

    private static let timeout = NameResolver.timeout, answerTimeout = NameResolver.answerTimeout
    private let world: World
    private var random: Random
    /// The next one is the last.
    private var events: [Entry] = []
    private var windows: [QueryWindow]
    private var names: [[Name]]
    /// Names that were not asked for yet, and those whose repetition is due; the next one is the last.
    private var waiting: [[Int]], repeating: [[Int]]
    private var repeatingInFlight: [Int]
    private var witnesses: [NameWitness], nextCheck: [Double]
    private var busyUntil = 0.0
    /// The queries that are overdue, and those of them that the window counts as lost.
    private var overdue: Set<Int> = [], lost: Set<Int> = []
    private var result = Result()

    static func run(_ world: World, seed: UInt64, until end: Double = 600) -> Result {
        var simulation = ResolverSimulation(world, seed: seed)
        return simulation.run(until: end)
    }

    private init(_ world: World, seed: UInt64) {
        self.world = world
        var random = Random(seed: seed)
        windows = (0..<world.windows).map { _ in QueryWindow(timeout: Self.timeout) }
        names = (0..<world.windows).map { _ in
            (0..<world.names).map { _ in Name(isDead: random.next() < world.dead) }
        }
        waiting = (0..<world.windows).map { _ in Array((0..<world.names).reversed()) }
        repeating = waiting.map { _ in [] }
        repeatingInFlight = waiting.map { _ in 0 }
        witnesses = waiting.map { _ in NameWitness() }
        nextCheck = waiting.map { _ in .infinity }
        self.random = random
    }

    private mutating func at(_ time: Double, _ event: Event) {
        var (low, high) = (0, events.count)
        while low < high {
            let middle = (low + high) / 2
            if events[middle].time > time { low = middle + 1 } else { high = middle }
        }
        events.insert(Entry(time: time, event: event), at: low)
    }

    private mutating func run(until end: Double) -> Result {
        for window in windows.indices { ask(window, now: 0) }
        while let entry = events.popLast(), entry.time <= end {
            let now = entry.time
            switch entry.event {
            case .checks(let window):
                nextCheck[window] = .infinity
                ask(window, now: now)
            case .witnesses(let window, let ticket, let end):
                windows[window].ended(ticket, end, now: now)
                ask(window, now: now)
            case .again(let window, let name):
                guard !names[window][name].isAnswered else { continue }
                repeating[window].append(name)
                ask(window, now: now)
            case .isOverdue(let window, let name, let query, let ticket):
                overdue.insert(query)
                if !windows[window].answersLate {
                    lost.insert(query)
                    windows[window].ended(ticket, .timedOut, now: now)
                }
                leave(window, ticket)
                didEnd(window, name, ticket, .timedOut, now: now)
            case .ends(let window, let name, let query, let ticket, let end):
                if lost.remove(query) == nil {
                    windows[window].ended(ticket, end, now: now)
                } else if end != .timedOut {
                    windows[window].wasAnsweredLate(ticket, now: now)
                }
                let wasOverdue = overdue.remove(query) != nil
                if !wasOverdue { leave(window, ticket) }
                guard !wasOverdue || end == .answered else { continue }
                didEnd(window, name, ticket, end, now: now)
            }
        }
        return result
    }

    private mutating func leave(_ window: Int, _ ticket: QueryWindow.Ticket) {
        if ticket.turn != .first { repeatingInFlight[window] -= 1 }
    }

    private mutating func didEnd(
        _ window: Int, _ name: Int, _ ticket: QueryWindow.Ticket, _ end: QueryWindow.End, now: Double
    ) {
        if !names[window][name].isAnswered { finish(window, name, ticket, end, now: now) }
        result.sizes.append((now, windows.reduce(0) { $0 + $1.size }))
        ask(window, now: now)
    }

    private mutating func ask(_ window: Int, now: Double) {
        if witnesses[window].take(windows[window], now: now) != nil {
            let ticket = windows[window].began(.later, now: now)
            let (end, delay) = answer(to: Name(isDead: false), now: now)
            at(now + min(delay, Self.timeout), .witnesses(window: window, ticket: ticket, end: end))
        }
        while windows[window].mayAsk(now: now), let name = next(window) {
            guard !names[window][name].isAnswered else { continue }
            names[window][name].queries += 1
            let queries = names[window][name].queries
            if queries > 1 { repeatingInFlight[window] += 1 }
            let ticket = windows[window].began(queries == 1 ? .first : queries == 2 ? .second : .later, now: now)
            result.queries += 1
            let (end, delay) = answer(to: names[window][name], now: now)
            let query = result.queries
            if delay > Self.timeout {
                at(now + Self.timeout, .isOverdue(window: window, name: name, query: query, ticket: ticket))
            }
            at(now + delay, .ends(window: window, name: name, query: query, ticket: ticket, end: end))
        }
        let hasMore = !waiting[window].isEmpty || !repeating[window].isEmpty
        let next = min(hasMore ? windows[window].nextTime : .infinity, witnesses[window].nextWake(windows[window]))
        if next < nextCheck[window] {
            nextCheck[window] = next
            at(max(now + 0.001, next), .checks(window: window))
        }
    }

    /// As ``NameResolver`` selects names.
    private mutating func next(_ window: Int) -> Int? {
        if waiting[window].isEmpty || 2 * repeatingInFlight[window] < windows[window].size,
            let name = repeating[window].popLast()
        {
            return name
        }
        return waiting[window].popLast()
    }

    private mutating func answer(to name: Name, now: Double) -> (QueryWindow.End, Double) {
        var latency = world.latency(&random)
        if name.isDead || world.outage?.contains(now) == true { return (.timedOut, Self.answerTimeout) }
        if let capacity = world.capacity {
            let wait = max(0, busyUntil - now)
            if wait * capacity > Double(world.queue) { return (.timedOut, Self.answerTimeout) }
            busyUntil = max(now, busyUntil) + 1 / capacity
            latency += busyUntil - now
        }
        if latency >= Self.answerTimeout { return (.timedOut, Self.answerTimeout) }
        return (random.next() < world.failures ? .failed : .answered, latency)
    }

    /// As ``NameResolver`` repeats queries.
    private mutating func finish(
        _ window: Int, _ name: Int, _ ticket: QueryWindow.Ticket, _ end: QueryWindow.End, now: Double
    ) {
        if let silent = windows[window].silentSince, result.silences.last != silent { result.silences.append(silent) }
        if end == .answered {
            names[window][name].isAnswered = true
            witnesses[window].wasAnswered("name", .v4)
            result.answered += 1
            result.answers.append(now)
            result.end = now
            return
        }
        var pause = 1.0
        if windows[window].blamesName(ticket) {
            names[window][name].failures += 1
            let (failures, since) = (names[window][name].failures, names[window][name].failingSince ?? ticket.began)
            names[window][name].failingSince = since
            let answering = now - max(since, windows[window].answersSince)
            if answering >= world.waitLimit, end == .failed || failures >= 4 {
                result.givenUp += 1
                result.end = now
                return
            }
            pause = min(8, pow(2, Double(end == .failed ? failures - 1 : failures - 2)))
        }
        at(now + pause, .again(window: window, name: name))
    }
}
