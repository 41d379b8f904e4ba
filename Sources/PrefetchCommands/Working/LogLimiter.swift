internal import Threading

/// Keeps a log readable when one thing goes wrong over and over: so many lines of a kind a second, and how many were left out is said with the
/// next one.
struct LogLimiter: Sendable {
    /// Lines of one kind a second.
    static let most = 10

    private struct Kind {
        var second: Int
        var count = 0
        var leftOut = 0
    }

    private var kinds: [String: Kind] = [:]

    /// How many lines of this kind were left out since the last one that was not; nil where this one is to be left out as well.
    ///
    /// * `second`: of any clock that does not go back.
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

    /// The second of a clock that does not go back.
    static var now: Int { Int(MonotonicClock.now) }

    /// What was left out and has not been said, by kind; nothing is left to say after it.
    mutating func rest() -> [(kind: String, leftOut: Int)] {
        let rest = kinds.filter { $0.value.leftOut > 0 }.map { ($0.key, $0.value.leftOut) }.sorted { $0.0 < $1.0 }
        kinds.removeAll()
        return rest
    }
}
