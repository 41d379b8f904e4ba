internal import FoundationEssentials
internal import Glibc
internal import Prefetch

/// How long transfers took, by the logs that workers wrote of them (`--transfer-log`).
struct TransferFigures: Sendable, Equatable {
    /// One transfer that took long.
    struct Transfer: Sendable, Equatable {
        var url: String
        /// Milliseconds in all, and until the first byte.
        var total: Double, firstByte: Double
        var received: Int
        var attempts: Int
        var status: Int?
        /// How it ended, where without an image.
        var outcome: String?
    }

    /// The most that are named.
    static let mostNamed = 20

    /// Milliseconds of all transfers, in their order.
    private(set) var totals: [Double] = []
    /// The slowest, slowest first.
    private(set) var slowest: [Transfer] = []
    /// Milliseconds of the parts of all transfers: name, connection, TLS, first byte, the rest.
    private(set) var stages = [Double](repeating: 0, count: 5)
    /// Transfers that went over a connection that was there.
    private(set) var reused = 0

    /// A line of a log.
    private struct Line: Decodable {
        struct Times: Decodable { var dns, connect, tls, first_byte, total: Double }
        var event: String
        var url: String
        var time: Double
        var attempts: Int
        var received: Int
        var http_status: Int?
        var milliseconds: Times?
        var reused: Bool?
        var outcome: String?
    }

    /// Reads the ends of transfers out of a log.
    ///
    /// * `window`: seconds since 1970: what ended at another time is of another batch.
    /// - Throws: `notFound`, `unreadableList` where it cannot be read, or nothing in it is a line of such a log.
    mutating func read(_ path: String, window: ClosedRange<Double>) throws(PrefetchError) {
        guard let file = fopen(path, "r") else {
            let reason = String(cString: strerror(errno))
            throw PrefetchError(
                errno == ENOENT ? .notFound : .unreadableList, "cannot read \(path): \(reason)",
                hint: "name what --transfer-log of the workers wrote, or leave --transfers out")
        }
        defer { fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        var (known, unknown) = (0, 0)
        let decoder = JSONDecoder()
        while true {
            let count = getline(&line, &capacity, file)
            guard count > 0, let line else { break }
            let data = Data(bytes: line, count: count)
            guard let read = try? decoder.decode(Line.self, from: data) else {
                unknown += 1
                continue
            }
            known += 1
            if read.event == "finish", window.contains(read.time) { add(read) }
        }
        guard known > 0 || unknown == 0 else {
            throw PrefetchError(
                .unreadableList, "\(path) is no log of transfers",
                hint: "name what --transfer-log of the workers wrote, or leave --transfers out")
        }
        totals.sort()
    }

    private mutating func add(_ line: Line) {
        guard let times = line.milliseconds, times.total > 0 else { return }
        totals.append(times.total)
        if line.reused == true { reused += 1 }
        // Each is counted from the beginning, and is 0 where there was no such step.
        var before = 0.0
        for (stage, end) in [times.dns, times.connect, times.tls, times.first_byte, times.total].enumerated() {
            stages[stage] += max(0, end - before)
            before = max(before, end)
        }
        guard slowest.count < Self.mostNamed || times.total > (slowest.last?.total ?? 0) else { return }
        let transfer = Transfer(
            url: line.url, total: times.total, firstByte: times.first_byte, received: line.received,
            attempts: line.attempts, status: line.http_status, outcome: line.outcome)
        slowest.insert(transfer, at: slowest.firstIndex { $0.total < times.total } ?? slowest.count)
        if slowest.count > Self.mostNamed { slowest.removeLast() }
    }

    /// The time that so great a share of the transfers did not need longer than; 0 where there are none.
    func percentile(_ share: Double) -> Double {
        guard !totals.isEmpty else { return 0 }
        return totals[min(totals.count - 1, Int(Double(totals.count) * share))]
    }
}
