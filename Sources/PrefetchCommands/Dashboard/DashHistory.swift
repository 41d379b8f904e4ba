/// The rate of a batch: current, peak, per second, and its variance.
struct DashHistory: Sendable {
    /// Milliseconds of the current rate's window, and seconds of the graph.
    private static let (span, graph) = (8_000, 120)

    private var samples: [(at: Int, finished: Int, bytes: Int)] = []
    private var second: (at: Int, finished: Int, bytes: Int)?
    /// Per second, newest last.
    private(set) var urls: [Double] = []
    private(set) var bytes: [Double] = []
    /// Moving mean and variance of the rate, over half a minute.
    private var mean = 0.0, variance = 0.0
    private var began: Int?
    private var moved: Int?

    /// * `at`: time of Redis, in milliseconds.
    mutating func add(at: Int, finished: Int, bytes count: Int) {
        began = began ?? at
        if let last = samples.last, at <= last.at { return }
        if let last = samples.last {
            if finished > last.finished { moved = at }
            let seconds = Double(at - last.at) / 1000
            let rate = max(0, Double(finished - last.finished) / seconds)
            // In the first half minute all samples weigh the same.
            let weight = max(min(1, seconds / 30), seconds / max(0.001, Double(at - (began ?? at)) / 1000))
            let change = rate - mean
            mean += weight * change
            variance = (1 - weight) * (variance + weight * change * change)
        }
        samples.append((at, finished, count))
        while samples.count > 2, at - samples[1].at >= Self.span { samples.removeFirst() }
        guard let start = second else {
            second = (at, finished, count)
            return
        }
        let elapsed = Double(at - start.at) / 1000
        guard elapsed >= 0.999 else { return }
        urls.append(max(0, Double(finished - start.finished) / elapsed))
        bytes.append(max(0, Double(count - start.bytes) / elapsed))
        if urls.count > Self.graph {
            urls.removeFirst()
            bytes.removeFirst()
        }
        second = (at, finished, count)
    }

    /// URLs and bytes per second over the last seconds; nil with one reading.
    var rate: (urls: Double, bytes: Double)? {
        guard let first = samples.first, let last = samples.last, last.at > first.at else { return nil }
        let seconds = Double(last.at - first.at) / 1000
        return (
            max(0, Double(last.finished - first.finished) / seconds), max(0, Double(last.bytes - first.bytes) / seconds)
        )
    }

    var peak: Double { urls.max() ?? 0 }

    /// Estimated seconds for `left` URLs, with the spread; nil for the first five seconds, without progress, and once the estimate has long
    /// passed: the rest waits for something that no rate predicts.
    func seconds(for left: Int) -> (seconds: Double, spread: Double)? {
        guard let began, let last = samples.last, last.at - began >= 5_000, mean > 0.001,
            rate.map({ $0.urls > 0 }) ?? false
        else { return nil }
        let seconds = Double(left) / mean
        guard Double(last.at - (moved ?? began)) / 1000 <= max(3, 2 * seconds) else { return nil }
        let count = max(1, min(30, Double(last.at - began) / 1000))
        let error = variance.squareRoot() / count.squareRoot()
        return (seconds, seconds * min(1, error / mean))
    }
}
