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

/// A line of a host whose next element may start, as far as the backlog knows.
struct HostLoad {
    let host: String
    let limits: HostLimits
    /// Running elements of the host.
    let running: Int
    /// Those of them that have the line's limit of transfers.
    let pooled: Int
    /// Waiting elements of the line.
    let waiting: Int
}

/// The backlog: for each host a line of elements per set of limits, and the order in which lines get the next slot. Serves elements in exact
/// order (first or last in, by priority) over all lines with a free slot: limits delay only those that have them. Of a host's running
/// elements at most so many have a limit of transfers as it says, and all together are at most the highest of these limits. Other hosts'
/// lines do not slow it: a line is examined when an element arrives, and when a slot of its host is released.
struct DownloadQueue<Element>: ~Copyable {
    private(set) var order: DownloadExecutionOrder

    fileprivate final class Host {
        let name: String
        var lines: [Line] = []
        var running = 0
        /// The highest limit of its lines.
        var most = 0
        /// Whether its next element comes before those of other hosts, and for how many in a row it did.
        var comesFirst = false, firstInARow = 0

        init(_ name: String) { self.name = name }
    }

    /// The running elements of a host that have one limit of transfers, whatever their rates.
    fileprivate final class Pool {
        var running = 0
    }

    fileprivate final class Line {
        let limits: HostLimits
        let pool: Pool
        var waiting = [DownloadLane<Element>](repeating: DownloadLane(), count: 3)
        var running = 0
        /// Whether it was declined although it is below its limit.
        var isHeld = false
        /// Whether none of its waiting elements may start.
        var isBlocked = false

        init(_ limits: HostLimits, _ pool: Pool) { (self.limits, self.pool) = (limits, pool) }

        var nextPriority: Int? { waiting.firstIndex { !$0.isEmpty } }
        var count: Int { waiting.reduce(0) { $0 + $1.count } }
        var isUnused: Bool { running == 0 && nextPriority == nil }

        func contains(where isMeant: (Element) -> Bool) -> Bool { waiting.contains { $0.contains(where: isMeant) } }
    }

    /// Where an element waits, and later the slot that it holds.
    struct Place {
        fileprivate let host: Host
        fileprivate let line: Line
        fileprivate let priority: Int
        fileprivate let sequence: Int

        var hostName: String { host.name }
        var limits: HostLimits { line.limits }
    }

    private struct Candidate: Comparable {
        let priority: Int
        /// 0 before all others of the priority.
        let turn: Int
        let rank: Int
        let host: Host
        let line: Line

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
    /// Lines with a free slot, by their next element. Stale entries, which no longer name the line's next element, are skipped.
    private var ready = Heap<Candidate>()
    private var sequence = 0

    init(order: DownloadExecutionOrder) {
        self.order = order
    }

    // MARK: Elements

    /// Adds an element. `priority` is 0 for high, 1 for normal, 2 for low.
    @discardableResult
    mutating func enqueue(
        _ element: Element, host name: String, priority: Int, limits: HostLimits, at place: QueuePlace = .inOrder
    ) -> Place {
        sequence += 1
        let host: Host
        if let known = hosts[name] {
            host = known
        } else {
            host = Host(name)
            hosts[name] = host
        }
        let known = host.lines.first { $0.limits == limits }
        let line = known ?? Self.addLine(limits, to: host)
        var number = sequence
        // The end that is served first: the oldest for FIFO, the newest for LIFO.
        if place == (order == .fifo ? .first : .last) {
            number = min(line.waiting[priority].first ?? sequence, 1) - 1
            line.waiting[priority].prepend(element, number)
        } else {
            line.waiting[priority].append(element, number)
        }
        if known == nil { announce(host) } else { announce(line, of: host) }
        return Place(host: host, line: line, priority: priority, sequence: number)
    }

    private static func addLine(_ limits: HostLimits, to host: Host) -> Line {
        let pool = host.lines.first { $0.limits.transfers == limits.transfers }?.pool ?? Pool()
        let line = Line(limits, pool)
        host.lines.append(line)
        host.most = max(host.most, limits.transfers)
        return line
    }

    /// Removes an element that waits, at once and wherever it is.
    mutating func remove(_ place: Place) {
        let line = place.line
        guard line.waiting[place.priority].remove(place.sequence) else { return }
        guard line.nextPriority != nil else {
            // What was decided for the elements that it had.
            (line.isHeld, line.isBlocked) = (false, false)
            return drop(line, of: place.host)
        }
        announce(line, of: place.host)
    }

    private mutating func drop(_ line: Line, of host: Host) {
        guard line.isUnused else { return }
        host.lines.removeAll { $0 === line }
        host.most = host.lines.reduce(0) { max($0, $1.limits.transfers) }
        if host.lines.isEmpty { hosts[host.name] = nil }
    }

    /// Removes the next element, which occupies a slot of its host until ``release(_:comesFirst:)``.
    /// * `mayStart`: whether an element may be the next one of its line; a line without such an element is skipped until
    ///   ``unblock(host:)``.
    /// * `prefers`: which elements of a host are to be next while it has any, in whichever line; nil: all are alike.
    /// * `admits`: decides for a line; a declined one is skipped until ``letGo(host:)`` or a released slot.
    mutating func next(
        where mayStart: (Element) -> Bool = { _ in true },
        prefers: (_ host: String) -> ((Element) -> Bool)? = { _ in nil },
        admits: (HostLoad) -> HostAdmission<Element> = { _ in .next }
    ) -> Element? {
        while let candidate = ready.popMin() {
            let (host, line) = (candidate.host, candidate.line)
            guard Self.hasRoom(line, of: host), let priority = line.nextPriority,
                candidate == self.candidate(line, of: host, priority)
            else { continue }
            // Before the admission, which may use up an instant of a rate.
            guard let first = line.waiting[priority].index(order, where: mayStart) else {
                line.isBlocked = true
                continue
            }
            if host.lines.count > 1, let isPreferred = prefers(host.name), !line.contains(where: isPreferred),
                host.lines.contains(where: { other in
                    Self.hasRoom(other, of: host) && other.contains { isPreferred($0) && mayStart($0) }
                })
            {
                line.isHeld = true
                continue
            }
            let admission = admits(
                HostLoad(
                    host: host.name, limits: line.limits, running: host.running, pooled: line.pool.running,
                    waiting: line.count))
            guard let place = line.waiting[priority].index(admission, first: first, mayStart) else {
                line.isHeld = true
                continue
            }
            let cameFirst = host.comesFirst
            host.comesFirst = false
            count(1, in: line, of: host)
            let element = line.waiting[priority].remove(at: place)
            if cameFirst { announce(host) } else { announce(line, of: host) }
            return element
        }
        return nil
    }

    private func count(_ change: Int, in line: Line, of host: Host) {
        host.running += change
        line.running += change
        line.pool.running += change
    }

    /// Releases the slot of an element.
    /// * `comesFirst`: whether the host's next element of the highest priority comes before those of other hosts. Of 17 in a row one waits
    ///   for its turn.
    mutating func release(_ place: Place, comesFirst: Bool = false) {
        let host = place.host
        count(-1, in: place.line, of: host)
        host.comesFirst = comesFirst && host.firstInARow < Self.mostFirst
        host.firstInARow = host.comesFirst ? host.firstInARow + 1 : 0
        for line in host.lines { line.isHeld = false }
        drop(place.line, of: host)
        announce(host)
    }

    // MARK: Hosts

    /// Whether the element waits for its host, not for its turn.
    func isWaitingForHost(_ place: Place) -> Bool { !Self.hasRoom(place.line, of: place.host) }

    /// Running and waiting elements of a host.
    /// * `isMeant`: of lines with such limits.
    func load(host: String, of isMeant: (HostLimits) -> Bool = { _ in true }) -> (running: Int, waiting: Int) {
        var load = (running: 0, waiting: 0)
        for line in hosts[host]?.lines ?? [] where isMeant(line.limits) {
            load.running += line.running
            load.waiting += line.count
        }
        return load
    }

    mutating func letGo(host: String) {
        guard let host = hosts[host] else { return }
        for line in host.lines where line.isHeld {
            line.isHeld = false
            announce(line, of: host)
        }
    }

    /// One of the host's waiting elements may start now.
    mutating func unblock(host: String) {
        guard let host = hosts[host] else { return }
        for line in host.lines where line.isBlocked {
            line.isBlocked = false
            announce(line, of: host)
        }
    }

    mutating func reorder(_ order: DownloadExecutionOrder) {
        self.order = order
        ready = Heap()
        for host in hosts.values { announce(host) }
    }

    private static func hasRoom(_ line: Line, of host: Host) -> Bool {
        !line.isHeld && !line.isBlocked && line.pool.running < line.limits.transfers && host.running < host.most
    }

    private mutating func announce(_ host: Host) {
        for line in host.lines { announce(line, of: host) }
    }

    private mutating func announce(_ line: Line, of host: Host) {
        guard Self.hasRoom(line, of: host), let priority = line.nextPriority else { return }
        ready.insert(candidate(line, of: host, priority))
    }

    private func candidate(_ line: Line, of host: Host, _ priority: Int) -> Candidate {
        let lane = line.waiting[priority]
        return Candidate(
            priority: priority, turn: host.comesFirst ? 0 : 1, rank: order == .fifo ? lane.first! : -lane.last!,
            host: host, line: line)
    }
}
