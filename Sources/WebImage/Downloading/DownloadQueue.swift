internal import DequeModule
internal import HeapModule

enum QueuePlace {
    case first
    case inOrder
    /// At the end: a retry.
    case last
}

enum HostAdmission<Element> {
    case no
    case next
    /// A random element, preferably one of these, for a probe of a silent host: the next one may be one that the host never answers.
    case any(of: (Element) -> Bool)
    /// The first match; ``no`` if there is none.
    case first(where: (Element) -> Bool)
}

struct HostLimits {
    var transfers: Int
    /// Requests per second; nil: unlimited.
    var rate: Double?

    mutating func tighten(_ other: HostLimits) {
        transfers = min(transfers, other.transfers)
        if let rate = other.rate { self.rate = min(self.rate ?? rate, rate) }
    }
}

/// The backlog: one queue per host, and the order in which hosts get the next slot. Serves elements in exact order (first or last in, by
/// priority) over all hosts with a free slot; a host at its limit delays only itself. Other hosts' queues do not slow it: its host is
/// examined when an element arrives and when its slot is released.
struct DownloadQueue<Element>: ~Copyable {
    private(set) var order: DownloadExecutionOrder

    private final class Host {
        let name: String
        var waiting: [Deque<(sequence: Int, element: Element)>] = [[], [], []]
        var running = 0
        var limits: HostLimits
        /// Whether it was declined although it is below its limit.
        var isHeld = false
        /// Whether none of its waiting elements may start.
        var isBlocked = false
        /// Whether its next element comes before those of other hosts, and for how many in a row it did.
        var comesFirst = false, firstInARow = 0

        init(_ name: String, limits: HostLimits) {
            self.name = name
            self.limits = limits
        }

        var nextPriority: Int? { waiting.firstIndex { !$0.isEmpty } }
        var count: Int { waiting.reduce(0) { $0 + $1.count } }
    }

    private struct Candidate: Comparable {
        let priority: Int
        /// 0 before all others of the priority.
        let turn: Int
        let rank: Int
        let host: Host

        static func < (lhs: Self, rhs: Self) -> Bool {
            (lhs.priority, lhs.turn, lhs.rank) < (rhs.priority, rhs.turn, rhs.rank)
        }
        static func == (lhs: Self, rhs: Self) -> Bool {
            (lhs.priority, lhs.turn, lhs.rank) == (rhs.priority, rhs.turn, rhs.rank)
        }
    }

    /// How many elements of one host in a row may come before those of others.
    private static var mostFirst: Int { 16 }

    private var hosts: [ByteText: Host] = [:]
    /// Hosts with a free slot, by their next element. Stale entries, which no longer name the host's next element, are skipped.
    private var ready = Heap<Candidate>()
    private var sequence = 0

    init(order: DownloadExecutionOrder) {
        self.order = order
    }

    /// Adds an element. `priority` is 0 for high, 1 for normal, 2 for low. The lowest `limits` of a host's elements apply while it has any.
    mutating func enqueue(
        _ element: Element, host: String, priority: Int, limits: HostLimits, at place: QueuePlace = .inOrder
    ) {
        sequence += 1
        let entry: Host
        if let known = hosts[host] {
            entry = known
            entry.limits.tighten(limits)
        } else {
            entry = Host(host, limits: limits)
            hosts[host] = entry
        }
        // The end that is served first: the oldest for FIFO, the newest for LIFO.
        if place == (order == .fifo ? .first : .last) {
            let rank = (entry.waiting[priority].first?.sequence ?? sequence) - 1
            entry.waiting[priority].prepend((min(rank, 0), element))
        } else {
            entry.waiting[priority].append((sequence, element))
        }
        announce(entry)
    }

    /// Removes the next element and occupies a slot of its host until ``release(host:)``.
    /// * `mayStart`: whether an element may be the next one of its host; a host without such an element is skipped until
    ///   ``unblock(host:)``.
    /// * `admits`: decides for a host, its limits, and its running and waiting elements; a declined host is skipped until ``letGo(host:)``
    ///   or a released slot.
    mutating func next(
        where mayStart: (Element) -> Bool = { _ in true },
        admits: (_ host: String, _ limits: HostLimits, _ running: Int, _ waiting: Int) -> HostAdmission<Element> = {
            _, _, _, _ in .next
        }
    ) -> Element? {
        while let candidate = ready.popMin() {
            let entry = candidate.host
            guard hasRoom(entry), let priority = entry.nextPriority, priority == candidate.priority,
                rank(entry, priority) == candidate.rank
            else { continue }
            // Before the admission, which may use up an instant of the host's rate.
            guard let first = first(of: entry.waiting[priority], where: mayStart) else {
                entry.isBlocked = true
                continue
            }
            let admission = admits(entry.name, entry.limits, entry.running, entry.count)
            let place = place(entry.waiting[priority], admission, first: first, mayStart)
            guard let place else {
                entry.isHeld = true
                continue
            }
            entry.running += 1
            entry.comesFirst = false
            defer { announce(entry) }
            return entry.waiting[priority].remove(at: place).element
        }
        return nil
    }

    private func first(
        of waiting: borrowing Deque<(sequence: Int, element: Element)>, where mayStart: (Element) -> Bool
    ) -> Int? {
        order == .fifo
            ? waiting.firstIndex { mayStart($0.element) } : waiting.lastIndex { mayStart($0.element) }
    }

    private func place(
        _ waiting: borrowing Deque<(sequence: Int, element: Element)>, _ admission: HostAdmission<Element>,
        first: Int, _ mayStart: (Element) -> Bool
    ) -> Int? {
        switch admission {
        case .no: nil
        case .next: first
        case .any(let isPreferred):
            waiting.indices.filter { isPreferred(waiting[$0].element) && mayStart(waiting[$0].element) }.randomElement()
                ?? waiting.indices.filter { mayStart(waiting[$0].element) }.randomElement()
        case .first(let isMeant): waiting.firstIndex { isMeant($0.element) }
        }
    }

    func isAtLimit(host: String) -> Bool { hosts[host].map { !hasRoom($0) } ?? false }

    func waitingCount(host: String) -> Int { hosts[host]?.count ?? 0 }

    func runningCount(host: String) -> Int { hosts[host]?.running ?? 0 }

    mutating func letGo(host: String) {
        guard let entry = hosts[host], entry.isHeld else { return }
        entry.isHeld = false
        announce(entry)
    }

    /// One of the host's waiting elements may start now.
    mutating func unblock(host: String) {
        guard let entry = hosts[host], entry.isBlocked else { return }
        entry.isBlocked = false
        announce(entry)
    }

    /// * `comesFirst`: whether the host's next element of the highest priority comes before those of other hosts. Of 17 in a row one waits
    ///   for its turn.
    mutating func release(host: String, comesFirst: Bool = false) {
        guard let entry = hosts[host] else { return }
        entry.running -= 1
        entry.isHeld = false
        entry.comesFirst = comesFirst && entry.firstInARow < Self.mostFirst
        entry.firstInARow = entry.comesFirst ? entry.firstInARow + 1 : 0
        if entry.running > 0 || entry.nextPriority != nil { announce(entry) } else { hosts[host] = nil }
    }

    private func hasRoom(_ entry: Host) -> Bool {
        entry.running < max(1, entry.limits.transfers) && !entry.isHeld && !entry.isBlocked
    }

    mutating func reorder(_ order: DownloadExecutionOrder) {
        self.order = order
        ready = Heap()
        for entry in hosts.values { announce(entry) }
    }

    mutating func removeAll() {
        ready = Heap()
        for (host, entry) in hosts {
            entry.waiting = [[], [], []]
            if entry.running == 0 { hosts[host] = nil }
        }
    }

    private mutating func announce(_ entry: Host) {
        guard hasRoom(entry), let priority = entry.nextPriority else { return }
        let turn = entry.comesFirst ? 0 : 1
        ready.insert(Candidate(priority: priority, turn: turn, rank: rank(entry, priority), host: entry))
    }

    private func rank(_ entry: Host, _ priority: Int) -> Int {
        order == .fifo ? entry.waiting[priority].first!.sequence : -entry.waiting[priority].last!.sequence
    }
}
