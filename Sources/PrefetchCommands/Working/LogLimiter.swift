internal import Threading

/// Limits repeated log lines: a number of lines per kind and second; the next line has the count of suppressed ones.
struct LogLimiter: Sendable {
    static let most = 10

    private struct Kind {
        var second: Int
        var count = 0
        var leftOut = 0
    }

    private var kinds: [String: Kind] = [:]

    /// How many lines of this kind were suppressed since the last one that was written; nil if this one is to be suppressed too.
    /// * `second`: of a monotonic clock.
    mutating func admit(_ kind: String, second: Int) -> Int? {
        var state = kinds[kind] ?? Kind(second: second)
        defer { kinds[kind] = state }
        if state.second != second { (state.second, state.count) = (second, 0) }
        guard state.count < Self.most else {
            state.leftOut += 1
            return nil
        }
        state.count += 1
        defer { state.leftOut = 0 }
        return state.leftOut
    }

    static var now: Int { Int(MonotonicClock.now) }

    /// Unreported counts of suppressed lines, by kind; resets them.
    mutating func rest() -> [(kind: String, leftOut: Int)] {
        let rest = kinds.filter { $0.value.leftOut > 0 }.map { ($0.key, $0.value.leftOut) }.sorted { $0.0 < $1.0 }
        kinds.removeAll()
        return rest
    }
}
