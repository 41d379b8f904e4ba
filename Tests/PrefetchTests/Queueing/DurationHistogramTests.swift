import Origin
import Testing

@testable import Prefetch

@Suite("Durations in buckets")
struct DurationHistogramTests {
    @Test("A bound belongs to its bucket, what is above it to the next, and what is above all to the last")
    func bounds() {
        for (index, bound) in DurationHistogram.bounds.enumerated() {
            var histogram = DurationHistogram()
            histogram.add(bound)
            histogram.add(bound * 1.000_1)
            #expect(histogram.counts[index] == 1 && histogram.counts[index + 1] == 1, "\(bound)")
        }
        var ends = DurationHistogram()
        for seconds in [0, 1e-9, 1e9, -1, .infinity, .nan] { ends.add(seconds) }
        #expect(ends.counts.first == 2 && ends.counts.last == 1 && ends.total == 3)
        ends.add(5, at: -1)
        ends.add(5, at: 70)
        #expect(ends.total == 3)
    }

    @Test("A quantile is within 19 % of the true one, and grows with its share", arguments: 0..<20)
    func quantiles(seed: Int) throws {
        var generator = SplitMix64(state: UInt64(seed))
        let values = (0..<1000).map { _ in Double.random(in: 0.002...Double(seed + 1), using: &generator) }.sorted()
        var histogram = DurationHistogram()
        for value in values { histogram.add(value) }
        var last = 0.0
        for share in stride(from: 0.01, through: 1, by: 0.01) {
            let found = try #require(histogram.quantile(share))
            let rank = max(0, Int((share * 1000).rounded(.up)) - 1)
            #expect(abs(found / values[rank] - 1) < 0.19, "\(share) of \(values[rank]): \(found)")
            #expect(found >= last)
            last = found
        }
        #expect(abs(Double(histogram.sum) / 1e6 - values.reduce(0, +)) < 0.01)
        #expect(histogram.doublings.last?.count == 1000 && histogram.doublings.count == 18)
        for (bound, count) in histogram.doublings { #expect(count == values.count { $0 <= bound }) }
    }

    @Test("Of nothing there is no quantile")
    func nothing() {
        #expect(DurationHistogram().quantile(0.5) == nil)
    }
}
