internal import Prefetch
internal import WebImage

/// The rate of a batch, a worker or a host: current, peak, and by second for the graphs.
struct DashHistory: Sendable {
    /// Seconds of the graph.
    private static let graph = 120

    private(set) var rate = ProgressRate()
    private var second: ProgressMark?
    /// Per second, newest last.
    private(set) var images: [Double] = []
    private(set) var bytes: [Double] = []

    mutating func add(_ status: BatchStatus) {
        rate.add(status)
        let counts = status.counts
        count(
            ProgressMark(at: status.at, finished: counts.finished, skipped: counts.skipped, bytes: counts.bytes))
    }

    /// Takes a reading of a worker or a host, at a time of Redis.
    mutating func add(_ mark: ProgressMark) {
        rate.add(mark)
        count(mark)
    }

    private mutating func count(_ mark: ProgressMark) {
        guard let start = second else {
            second = mark
            return
        }
        let elapsed = Double(mark.at - start.at) / 1000
        guard elapsed >= 0.999 else { return }
        let done = (mark.finished - mark.skipped) - (start.finished - start.skipped)
        images.append(max(0, Double(done) / elapsed))
        bytes.append(max(0, Double(mark.bytes - start.bytes) / elapsed))
        if images.count > Self.graph {
            images.removeFirst()
            bytes.removeFirst()
        }
        second = mark
    }

    var peak: Double { images.max() ?? 0 }
}
