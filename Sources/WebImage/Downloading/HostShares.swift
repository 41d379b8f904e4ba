internal import HeapModule

/// One downloader's share of the transfers that all processes of a queue together may have to a host. For each host it reports how many
/// transfers it has and could have, and is granted a number; an unneeded share is returned a tenth of a second later. Used only on the
/// downloader's thread; the caller passes the time.
final class HostShares {
    private final class Record {
        var limit: Int
        var granted = 0
        /// The demand last reported.
        var told = 0
        /// Whether a request is pending, and whether it is outdated by now.
        var isRequesting = false, isOutdated = false
        /// Seconds until the next request for more, doubled while nothing is granted.
        var pause = minPause
        /// Next time to examine it.
        var wake = Double.infinity

        init(limit: Int) { self.limit = limit }
    }

    private struct Wake: Comparable {
        let time: Double
        let host: String
        static func < (lhs: Self, rhs: Self) -> Bool { lhs.time < rhs.time }
        static func == (lhs: Self, rhs: Self) -> Bool { lhs.time == rhs.time }
    }

    /// Seconds before an unneeded share is returned; otherwise most lists would request it again with each URL.
    private static let returnDelay = 0.1
    private static let minPause = 0.1
    private static let mostPause = 1.0
    /// Seconds after which the share is reported again, in case Redis has lost it.
    private static let refresh = 5.0

    private var records: [ByteText: Record] = [:]
    private var wakes = Heap<Wake>()
    private var wanting: Set<ByteText> = []

    typealias Load = (running: Int, waiting: Int)

    /// Whether one more transfer to a host may start now; if not, ``grant(_:_:load:now:random:)`` follows.
    func mayBegin(_ host: String, limit: Int, running: Int, now: Double) -> Bool {
        guard limit < .max else { return true }
        let record: Record
        if let known = records[host] {
            record = known
            record.limit = limit
        } else {
            record = Record(limit: limit)
            records[host] = record
            ask(host, record)
        }
        if running < min(record.granted, limit) { return true }
        if !record.isRequesting && record.granted < limit { look(record, host, at: now + record.pause) }
        return false
    }

    func didEnd(_ host: String, load: @autoclosure () -> Load, now: Double) {
        guard let record = records[host] else { return }
        let load = load()
        if load.running >= record.granted {
            // It exceeded its share, and others wait for the excess.
            ask(host, record)
        } else if load.running + load.waiting < max(record.granted, record.told) {
            look(record, host, at: now + Self.returnDelay)
        }
    }

    var hasRequests: Bool { !wanting.isEmpty }

    /// Returns the pending requests, and marks them as sent.
    func takeRequests(_ load: (String) -> Load) -> [HostShareRequest] {
        defer { wanting = [] }
        return wanting.compactMap { host in
            guard let record = records[host] else { return nil }
            let (running, waiting) = load(host.text)
            record.told = min(record.limit, running + waiting)
            return HostShareRequest(host: host.text, limit: record.limit, running: running, wanted: record.told)
        }
    }

    /// Handles the reply to a request; nil: no reply, the previous grant stays valid.
    /// * `random`: from 0 to 1.
    func grant(_ host: String, _ granted: Int?, load: Load, now: Double, random: Double) {
        guard let record = records[host] else { return }
        record.isRequesting = false
        let hasMore = granted.map { $0 > record.granted } ?? false
        record.pause = hasMore ? Self.minPause : min(Self.mostPause, 2 * record.pause)
        record.granted = granted ?? record.granted
        record.wake = .infinity
        let wanted = min(record.limit, load.running + load.waiting)
        if record.isOutdated {
            ask(host, record)
        } else if wanted == 0 && record.granted == 0 && record.told == 0 {
            records[host] = nil
        } else if wanted < max(record.granted, record.told) {
            look(record, host, at: now + Self.returnDelay)
        } else if wanted > record.granted {
            look(record, host, at: now + record.pause * (0.5 + random))
        } else {
            look(record, host, at: now + Self.refresh)
        }
    }

    func wake(now: Double) {
        while let wake = wakes.min, wake.time <= now {
            wakes.removeMin()
            guard let record = records[wake.host], record.wake == wake.time else { continue }
            record.wake = .infinity
            ask(wake.host, record)
        }
    }

    /// When ``wake(now:)`` is due; infinity: never by itself.
    var nextWake: Double { wakes.min?.time ?? .infinity }

    /// Reports all hosts again: this process was dropped as dead and continues under a new name.
    func reportAgain() {
        for (host, record) in records { ask(host.text, record) }
    }

    private func ask(_ host: String, _ record: Record) {
        record.isOutdated = record.isRequesting
        guard !record.isRequesting else { return }
        record.isRequesting = true
        wanting.insert(host)
    }

    private func look(_ record: Record, _ host: String, at time: Double) {
        guard time < record.wake else { return }
        record.wake = time
        wakes.insert(Wake(time: time, host: host))
    }
}
