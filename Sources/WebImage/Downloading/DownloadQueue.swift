internal import DequeModule
internal import HeapModule

/// Where an element goes among the others of its host and priority.
enum QueuePlace {
    /// Before them: a redirect, or another try.
    case first
    case inOrder
    /// Behind them: another try of what its host gave no answer to.
    case last
}

/// Whether a host may have one more out.
enum HostAdmission<Element> {
    case no
    /// Its next element.
    case next
    /// Any of its elements, of these if there are such: whether the host is there is to be found out, and what is next may be what it
    /// never answers.
    case any(of: (Element) -> Bool)
    /// The first of which this is true; none is as ``no``.
    case first(where: (Element) -> Bool)
}

/// What those who wait for a host ask for it.
struct HostLimits {
    /// Transfers at once.
    var transfers: Int
    /// Requests a second; nil: as many as there are.
    var rate: Double?

    /// Keeps to the lower of both.
    mutating func tighten(_ other: HostLimits) {
        transfers = min(transfers, other.transfers)
        if let rate = other.rate { self.rate = min(self.rate ?? rate, rate) }
    }
}

/// The backlog: one queue per host, and the order in which hosts get the next slot.
///
/// Exact order (first or last in, by priority) over all hosts that have a slot free; a host at its limit delays only itself. An
/// element is looked at once however long the queues of other hosts are.
///
/// What waits for a host stays where it is: an element costs a look for its host when it comes and when its slot is given back, none
/// in between.
struct DownloadQueue<Element>: ~Copyable {
    /// Which element of a host, and of all hosts, is next.
    private(set) var order: DownloadExecutionOrder

    private final class Host {
        let name: String
        var waiting: [Deque<(sequence: Int, element: Element)>] = [[], [], []]
        var running = 0
        var limits: HostLimits
        /// Whether it may have none now, although it has fewer out than its limit.
        var isHeld = false

        init(_ name: String, limits: HostLimits) {
            self.name = name
            self.limits = limits
        }

        /// The priority whose queue is next; 0 is the highest.
        var nextPriority: Int? { waiting.firstIndex { !$0.isEmpty } }
        var count: Int { waiting.reduce(0) { $0 + $1.count } }
    }

    private struct Candidate: Comparable {
        let priority: Int
        let rank: Int
        let host: Host

        static func < (lhs: Self, rhs: Self) -> Bool {
            (lhs.priority, lhs.rank) < (rhs.priority, rhs.rank)
        }
        static func == (lhs: Self, rhs: Self) -> Bool {
            (lhs.priority, lhs.rank) == (rhs.priority, rhs.rank)
        }
    }

    private var hosts: [String: Host] = [:]
    /// Hosts with a free slot by their next element. One may be out of date: it counts only if it names the host's next
    /// element at the time it is taken out.
    private var ready = Heap<Candidate>()
    private var sequence = 0

    init(order: DownloadExecutionOrder) {
        self.order = order
    }

    /// Adds an element. `priority` is 0 for high, 1 for normal, 2 for low; `limits` are those of its host: the lowest of all its elements
    /// hold while the host has any. `place`: where among those of its host and priority.
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

    /// Takes the next element out and occupies a slot of its host until ``release(host:)``.
    /// * `admits`: asked with a host, its limits, what it has out and what waits; one it says no to is passed over until it is let go
    ///   or gets a slot back.
    mutating func next(
        admits: ((_ host: String, _ limits: HostLimits, _ running: Int, _ waiting: Int) -> HostAdmission<Element>)? =
            nil
    ) -> Element? {
        while let candidate = ready.popMin() {
            let entry = candidate.host
            guard hasRoom(entry), let priority = entry.nextPriority, priority == candidate.priority,
                rank(entry, priority) == candidate.rank
            else { continue }
            let admission = admits?(entry.name, entry.limits, entry.running, entry.count) ?? .next
            let place = place(entry.waiting[priority], admission)
            guard let place else {
                entry.isHeld = true
                continue
            }
            entry.running += 1
            defer { announce(entry) }
            return entry.waiting[priority].remove(at: place).element
        }
        return nil
    }

    /// Where the element is that an admission means; nil: none of them.
    private func place(
        _ waiting: borrowing Deque<(sequence: Int, element: Element)>, _ admission: HostAdmission<Element>
    ) -> Int? {
        switch admission {
        case .no: nil
        case .next: order == .fifo ? 0 : waiting.count - 1
        case .any(let isPreferred):
            waiting.indices.filter { isPreferred(waiting[$0].element) }.randomElement()
                ?? waiting.indices.randomElement()
        case .first(let isMeant): waiting.firstIndex { isMeant($0.element) }
        }
    }

    /// Whether a host has as many out as it may.
    func isAtLimit(host: String) -> Bool { hosts[host].map { !hasRoom($0) } ?? false }

    /// How many of a host wait.
    func waitingCount(host: String) -> Int { hosts[host]?.count ?? 0 }

    /// How many of a host are out.
    func runningCount(host: String) -> Int { hosts[host]?.running ?? 0 }

    /// A host that was passed over is asked for again.
    mutating func letGo(host: String) {
        guard let entry = hosts[host], entry.isHeld else { return }
        entry.isHeld = false
        announce(entry)
    }

    /// Gives a slot of the host back.
    mutating func release(host: String) {
        guard let entry = hosts[host] else { return }
        entry.running -= 1
        entry.isHeld = false
        if entry.running > 0 || entry.nextPriority != nil { announce(entry) } else { hosts[host] = nil }
    }

    private func hasRoom(_ entry: Host) -> Bool {
        entry.running < max(1, entry.limits.transfers) && !entry.isHeld
    }

    /// Serves what waits in another order.
    mutating func reorder(_ order: DownloadExecutionOrder) {
        self.order = order
        ready = Heap()
        for entry in hosts.values { announce(entry) }
    }

    /// Forgets everything that waits.
    mutating func removeAll() {
        ready = Heap()
        for (host, entry) in hosts {
            entry.waiting = [[], [], []]
            if entry.running == 0 { hosts[host] = nil }
        }
    }

    private mutating func announce(_ entry: Host) {
        guard hasRoom(entry), let priority = entry.nextPriority else { return }
        ready.insert(Candidate(priority: priority, rank: rank(entry, priority), host: entry))
    }

    private func rank(_ entry: Host, _ priority: Int) -> Int {
        order == .fifo ? entry.waiting[priority].first!.sequence : -entry.waiting[priority].last!.sequence
    }
}
