internal import HeapModule

/// The part of one downloader in the transfers that all processes of a queue together may have to one host.
///
/// It says of each host how many transfers it has and how many it could have, and is told how many it may have; a part that it does not
/// need goes back a tenth of a second later. Only the downloader's thread uses it; time comes from outside.
final class HostShares {
    private final class Record {
        /// Transfers at once that all processes together may have.
        var limit: Int
        /// Those that are this one's.
        var granted = 0
        /// How many it said it could have.
        var told = 0
        /// A call about it is on its way, and whether that says too much by now.
        var isAsking = false, isOutdated = false
        /// Seconds until it is asked for more again, doubled while there is no more.
        var pause = leastPause
        /// When it is looked at again.
        var wake = Double.infinity

        init(limit: Int) { self.limit = limit }
    }

    private struct Wake: Comparable {
        let time: Double
        let host: String
        static func < (lhs: Self, rhs: Self) -> Bool { lhs.time < rhs.time }
        static func == (lhs: Self, rhs: Self) -> Bool { lhs.time == rhs.time }
    }

    /// Seconds a part is kept that nothing needs, or most lists would ask for it again with each URL.
    private static let linger = 0.1
    private static let leastPause = 0.1
    private static let mostPause = 1.0
    /// Seconds after which what it has is said again, for a Redis that has forgotten it.
    private static let refresh = 5.0

    private var records: [String: Record] = [:]
    private var wakes = Heap<Wake>()
    private var wanting: Set<String> = []

    /// How many transfers to a host there are and how many wait for it.
    typealias Load = (running: Int, waiting: Int)

    /// Whether one more transfer to a host may begin now; where not, its turn comes with ``grant(_:_:load:now:random:)``.
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
        if !record.isAsking && record.granted < limit { look(record, host, at: now + record.pause) }
        return false
    }

    /// A transfer to a host has ended.
    func didEnd(_ host: String, load: Load, now: Double) {
        guard let record = records[host] else { return }
        if load.running >= record.granted {
            // Others wait for what was more than its part.
            ask(host, record)
        } else if load.running + load.waiting < max(record.granted, record.told) {
            look(record, host, at: now + Self.linger)
        }
    }

    /// Whether anything is to be asked.
    var hasWishes: Bool { !wanting.isEmpty }

    /// What to ask; it is on its way from here on.
    func takeWishes(_ load: (String) -> Load) -> [HostShareWish] {
        defer { wanting = [] }
        return wanting.compactMap { host in
            guard let record = records[host] else { return nil }
            let (running, waiting) = load(host)
            record.told = min(record.limit, running + waiting)
            return HostShareWish(host: host, limit: record.limit, running: running, wanted: record.told)
        }
    }

    /// The answer to a wish; nil: there is none, and what was granted before holds.
    /// * `random`: from 0 to 1.
    func grant(_ host: String, _ granted: Int?, load: Load, now: Double, random: Double) {
        guard let record = records[host] else { return }
        record.isAsking = false
        let hasMore = granted.map { $0 > record.granted } ?? false
        record.pause = hasMore ? Self.leastPause : min(Self.mostPause, 2 * record.pause)
        record.granted = granted ?? record.granted
        record.wake = .infinity
        let wanted = min(record.limit, load.running + load.waiting)
        if record.isOutdated {
            ask(host, record)
        } else if wanted == 0 && record.granted == 0 && record.told == 0 {
            records[host] = nil
        } else if wanted < max(record.granted, record.told) {
            look(record, host, at: now + Self.linger)
        } else if wanted > record.granted {
            look(record, host, at: now + record.pause * (0.5 + random))
        } else {
            look(record, host, at: now + Self.refresh)
        }
    }

    /// Asks for the hosts whose time has come.
    func wake(now: Double) {
        while let wake = wakes.min, wake.time <= now {
            wakes.removeMin()
            guard let record = records[wake.host], record.wake == wake.time else { continue }
            record.wake = .infinity
            ask(wake.host, record)
        }
    }

    /// When ``wake(now:)`` has something to do; infinity: never by itself.
    var nextWake: Double { wakes.min?.time ?? .infinity }

    /// Says of every host again what it has: it was taken for dead, and goes on under another name.
    func sayAgain() {
        for (host, record) in records { ask(host, record) }
    }

    private func ask(_ host: String, _ record: Record) {
        record.isOutdated = record.isAsking
        guard !record.isAsking else { return }
        record.isAsking = true
        wanting.insert(host)
    }

    private func look(_ record: Record, _ host: String, at time: Double) {
        guard time < record.wake else { return }
        record.wake = time
        wakes.insert(Wake(time: time, host: host))
    }
}
