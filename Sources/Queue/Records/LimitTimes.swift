internal import Redis

/// Milliseconds for which the workers that had URLs of a batch waited, by cause, summed over workers.
package struct LimitTimes: Sendable, Equatable {
    private var milliseconds: [LimitCause: Int] = [:]

    package init() {}

    package var isEmpty: Bool { milliseconds.isEmpty }

    package subscript(cause: LimitCause) -> Int { milliseconds[cause] ?? 0 }

    package var total: Int { milliseconds.values.reduce(0, +) }

    /// The causes with any time, longest first.
    package var causes: [LimitCause] {
        LimitCause.allCases.filter { self[$0] > 0 }.sorted { (self[$0], $1.rawValue) > (self[$1], $0.rawValue) }
    }

    package mutating func add(_ cause: LimitCause, milliseconds count: Int) {
        if count > 0 { milliseconds[cause, default: 0] += count }
    }

    // MARK: In Redis

    /// Increments for the batch's fields: `m` + the number of a cause in ``LimitCause``.
    var fields: [(name: String, value: Int)] {
        LimitCause.allCases.enumerated().compactMap { number, cause in
            self[cause] > 0 ? ("m\(number)", self[cause]) : nil
        }
    }

    /// Reads the fields of a batch; ignores others.
    init(fields: [String: RedisValue]) {
        for (number, cause) in LimitCause.allCases.enumerated() {
            if let value = fields["m\(number)"]?.count { add(cause, milliseconds: min(value, 1 << 48)) }
        }
    }
}
