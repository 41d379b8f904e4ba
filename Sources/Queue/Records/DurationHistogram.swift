internal import Glibc

/// A histogram of transfer durations with fixed bounds, four per doubling, so that those of all workers can be added.
package struct DurationHistogram: Sendable, Equatable {
    /// Seconds: 2^(i/4) ms for i = 0 … 68, from 1 ms to 131 s.
    package static let bounds: [Double] = (0...68).map { exp2(Double($0) / 4) / 1000 }

    /// Durations above the previous bound and up to the bound of the same index; the last count has all above the last bound.
    package private(set) var counts = [Int](repeating: 0, count: bounds.count + 1)
    /// Microseconds of all durations.
    package private(set) var sum = 0

    package init() {}

    package var total: Int { counts.reduce(0, +) }

    /// Adds a duration in seconds.
    package mutating func add(_ seconds: Double) {
        guard seconds.isFinite, seconds >= 0 else { return }
        counts[Self.index(of: seconds)] += 1
        sum += Int(seconds * 1e6)
    }

    package mutating func add(_ count: Int, at index: Int) {
        if counts.indices.contains(index) { counts[index] += count }
    }

    package mutating func add(sum more: Int) { sum += more }

    /// The quantile in seconds, interpolated on the logarithmic scale of its bucket: at most 19 % off. Nil without durations; the last
    /// bound if it is above that.
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

    /// Cumulative counts up to 1 ms, 2 ms, 4 ms … 131 s.
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
        // A bound itself belongs to its own bucket, whatever the rounding of the logarithm.
        return min(last, Int((log2(milliseconds) * 4 - 1e-9).rounded(.up)))
    }
}
