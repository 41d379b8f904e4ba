/// A name that was answered. While queries are in flight and nothing is answered it is asked for again, once a second: that tells a silent
/// resolver from names that nobody answers. A list often ends with such names, and they must not wait for ever.
struct NameWitness {
    /// Seconds without an answer after which it is asked for, and between two times.
    private static let interval = 1.0
    private var last: (name: String, family: AddressFamily)?
    private var nextTime = -Double.infinity

    mutating func wasAnswered(_ name: String, _ family: AddressFamily) { last = (name, family) }

    /// What to ask for now, if anything.
    mutating func take(_ window: QueryWindow, now: Double) -> (name: String, family: AddressFamily)? {
        guard let last, now >= due(window) else { return nil }
        // A silent resolver is asked for a waiting name every other time: the witness may be gone.
        nextTime = now + Self.interval * (window.silentSince == nil ? 1 : 2)
        return last
    }

    /// When ``take(_:now:)`` is due; infinity: not by itself.
    func nextWake(_ window: QueryWindow) -> Double { last == nil ? .infinity : due(window) }

    private func due(_ window: QueryWindow) -> Double {
        window.waitsSince.map { max($0 + Self.interval, nextTime) } ?? .infinity
    }
}
