internal import HeapModule

/// One downloader's shares of the transfers that all processes of a queue together may have to a host, one for each limit that its URLs
/// have. For each it reports how many transfers it has and could have, and is granted a number; an unneeded share is returned a tenth of a
/// second later. Used only on the downloader's thread; the caller passes the time.
final class HostShares {
    private final class Record {
        let host: String
        let limit: Int
        var granted = 0
        /// The demand last reported.
        var told = 0
        /// Whether a request is pending, and whether it is outdated by now.
        var isRequesting = false, isOutdated = false
        /// Seconds until the next request for more, doubled while nothing is granted.
        var pause = minPause
        /// Next time to examine it.
        var wake = Double.infinity

        init(_ host: String, limit: Int) { (self.host, self.limit) = (host, limit) }
    }

    private struct Wake: Comparable {
        let time: Double
        let record: Record
        static func < (lhs: Self, rhs: Self) -> Bool { lhs.time < rhs.time }
        static func == (lhs: Self, rhs: Self) -> Bool { lhs.time == rhs.time }
    }

    /// Seconds before an unneeded share is returned; otherwise most lists would request it again with each URL.
    private static let returnDelay = 0.1
    private static let minPause = 0.1
    private static let mostPause = 1.0
    /// Seconds after which the share is reported again, in case Redis has lost it.
    private static let refresh = 5.0

    private var records: [ByteText: [Record]] = [:]
    private var wakes = Heap<Wake>()
    private var wanting: [Record] = []

    typealias Load = (running: Int, waiting: Int)

    private func record(_ host: String, _ limit: Int) -> Record? { records[host]?.first { $0.limit == limit } }

    /// Whether one more transfer with this limit to a host may start now; if not, ``grant(_:limit:_:load:now:random:)`` follows.
    /// * `running`: those with this limit.
    func mayBegin(_ host: String, limit: Int, running: Int, now: Double) -> Bool {
        guard limit < .max else { return true }
        let record: Record
        if let known = self.record(host, limit) {
            record = known
        } else {
            record = Record(host, limit: limit)
            ask(record)
            // Those with another limit may have to leave it some.
            for other in records[host] ?? [] { ask(other) }
            records[host, default: []].append(record)
        }
        if running < min(record.granted, limit) { return true }
        if !record.isRequesting && record.granted < limit { schedule(record, at: now + record.pause) }
        return false
    }

    func didEnd(_ host: String, limit: Int, load: @autoclosure () -> Load, now: Double) {
        guard let record = record(host, limit) else { return }
        let load = load()
        if load.running >= record.granted {
            // It exceeded its share, and others wait for the excess.
            ask(record)
        } else {
            returnUnneeded(of: record, load, now)
        }
    }

    /// Operations that waited have ended.
    func didLeave(_ host: String, limit: Int, load: @autoclosure () -> Load, now: Double) {
        guard let record = record(host, limit) else { return }
        returnUnneeded(of: record, load(), now)
    }

    private func returnUnneeded(of record: Record, _ load: Load, _ now: Double) {
        guard load.running + load.waiting < max(record.granted, record.told) else { return }
        schedule(record, at: now + Self.returnDelay)
    }

    var hasRequests: Bool { !wanting.isEmpty }

    /// Returns the pending requests, and marks them as sent. Of a host's limits that with the least transfers comes first, so that the others
    /// are told to leave it some.
    func takeRequests(_ load: (_ host: String, _ limit: Int) -> Load) -> [HostShareRequest] {
        defer { wanting = [] }
        return wanting.sorted { $0.granted < $1.granted }.map { record in
            let (running, waiting) = load(record.host, record.limit)
            record.told = min(record.limit, running + waiting)
            return HostShareRequest(host: record.host, limit: record.limit, running: running, wanted: record.told)
        }
    }

    /// Handles the reply to a request; nil: no reply, the previous grant stays valid.
    /// * `random`: from 0 to 1.
    func grant(_ host: String, limit: Int, _ granted: Int?, load: Load, now: Double, random: Double) {
        guard let record = record(host, limit) else { return }
        record.isRequesting = false
        let hasMore = granted.map { $0 > record.granted } ?? false
        record.pause = hasMore ? Self.minPause : min(Self.mostPause, 2 * record.pause)
        record.granted = granted ?? record.granted
        record.wake = .infinity
        let wanted = min(record.limit, load.running + load.waiting)
        if record.isOutdated {
            ask(record)
        } else if wanted == 0 && record.granted == 0 && record.told == 0 {
            records[host]?.removeAll { $0 === record }
            if records[host]?.isEmpty == true { records[host] = nil }
        } else if wanted < max(record.granted, record.told) {
            schedule(record, at: now + Self.returnDelay)
        } else if wanted > record.granted {
            schedule(record, at: now + record.pause * (0.5 + random))
        } else {
            schedule(record, at: now + Self.refresh)
        }
    }

    func wake(now: Double) {
        while let wake = wakes.min, wake.time <= now {
            wakes.removeMin()
            guard wake.record.wake == wake.time else { continue }
            wake.record.wake = .infinity
            ask(wake.record)
        }
    }

    /// When ``wake(now:)`` is due; infinity: never by itself.
    var nextWake: Double { wakes.min?.time ?? .infinity }

    /// Reports all hosts again: this process was dropped as dead and continues under a new name.
    func reportAgain() {
        for record in records.values.joined() { ask(record) }
    }

    private func ask(_ record: Record) {
        record.isOutdated = record.isRequesting
        guard !record.isRequesting else { return }
        record.isRequesting = true
        wanting.append(record)
    }

    private func schedule(_ record: Record, at time: Double) {
        guard time < record.wake else { return }
        record.wake = time
        wakes.insert(Wake(time: time, record: record))
    }
}
