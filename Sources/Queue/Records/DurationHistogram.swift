internal import Glibc

/// How many transfers took how long: counts between fixed bounds, four for each doubling, so that those of all workers can be added.
package struct DurationHistogram: Sendable, Equatable {
    /// Seconds: 2^(i/4) ms for i = 0 … 68, from 1 ms to 131 s.
    package static let bounds: [Double] = (0...68).map { exp2(Double($0) / 4) / 1000 }

    /// Durations above the bound before and up to the bound of the same index; the last one has all above the last bound.
    package private(set) var counts = [Int](repeating: 0, count: bounds.count + 1)
    /// Microseconds of all durations.
    package private(set) var sum = 0

    /// Nothing.
    package init() {}

    /// How many durations there are.
    package var total: Int { counts.reduce(0, +) }

    /// Adds a duration in seconds.
    package mutating func add(_ seconds: Double) {
        guard seconds.isFinite, seconds >= 0 else { return }
        counts[Self.index(of: seconds)] += 1
        sum += Int(seconds * 1e6)
    }

    /// Adds what others counted.
    package mutating func add(_ count: Int, at index: Int) {
        if counts.indices.contains(index) { counts[index] += count }
    }

    /// Adds microseconds to the sum alone.
    package mutating func add(sum more: Int) { sum += more }

    /// Seconds that so great a share of the durations did not exceed, between two bounds as if its bucket were evenly filled on their
    /// logarithmic scale: at most 19 % above or below. Nil where there are none; the last bound where it is above that.
    package func quantile(_ share: Double) -> Double? {
        let total = total
        guard total > 0 else { return nil }
        let rank = min(1, max(0, share)) * Double(total)
        var below = 0
        for (index, count) in counts.enumerated() where count > 0 {
            guard Double(below + count) >= rank else {
                below += count
                continue
            }
            guard index < Self.bounds.count else { break }
            let part = max(0, rank - Double(below)) / Double(count)
            guard index > 0 else { return Self.bounds[0] * part }
            return Self.bounds[index - 1] * pow(Self.bounds[index] / Self.bounds[index - 1], part)
        }
        return Self.bounds.last
    }

    /// How many durations are not above 1 ms, 2 ms, 4 ms … 131 s.
    package var doublings: [(bound: Double, count: Int)] {
        var sum = 0
        return zip(Self.bounds, counts).enumerated().compactMap { index, bucket in
            sum += bucket.1
            return index.isMultiple(of: 4) ? (Double(1 << (index / 4)) / 1000, sum) : nil
        }
    }

    private static func index(of seconds: Double) -> Int {
        let (milliseconds, last) = (seconds * 1000, bounds.count)
        guard milliseconds > 1 else { return 0 }
        // A bound itself belongs below it, whatever the logarithm makes of it.
        return min(last, Int((log2(milliseconds) * 4 - 1e-9).rounded(.up)))
    }
}
