internal import Glibc

/// Which signal in the row it is. A hang-up is only ever a first one: a closing terminal sends it once itself and once through
/// its shell, and nobody meant "at once" by that.
struct SignalCounter: Sendable {
    private var seen = 0

    /// - Returns: 1 for the first, 2 for the second…; nil for one that says nothing new.
    mutating func count(_ signal: Int32) -> Int? {
        if signal == SIGHUP && seen > 0 { return nil }
        seen += 1
        return seen
    }
}
