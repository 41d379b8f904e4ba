internal import DequeModule

/// Answers and refusals of the resolver, each for a bounded time. A value without a clock.
struct NameCache {
    enum Entry: Equatable {
        case addresses([IPAddress])
        case refused(WebImageError)

        static func == (one: Self, other: Self) -> Bool {
            switch (one, other) {
            case (.addresses(let one), .addresses(let other)): one == other
            case (.refused(let one), .refused(let other)): one.code == other.code && one.message == other.message
            default: false
            }
        }
    }

    private struct Kept {
        var entry: Entry
        var expires: Double
        /// Of its place in the order.
        var number: Int
    }

    /// Seconds an answer is kept, whatever its TTL: with 0 each URL of a host would ask again, with 2^31 an address would stay for ever.
    static let lifetimes = 60.0...3600.0
    /// Seconds a refusal is kept.
    static let refusalLifetime = 60.0
    private let capacity: Int
    private var kept: [String: Kept] = [:]
    private var order: Deque<(name: String, number: Int)> = []
    private var nextNumber = 0

    /// * `capacity`: names; beyond it the oldest goes.
    init(capacity: Int = 65_536) { self.capacity = capacity }

    var count: Int { kept.count }

    func entry(of name: String, now: Double) -> Entry? {
        guard let found = kept[name], found.expires > now else { return nil }
        return found.entry
    }

    /// * `lifetime`: seconds, as the resolver said.
    mutating func keep(_ addresses: [IPAddress], of name: String, lifetime: Double, now: Double) {
        let range = Self.lifetimes
        put(
            Kept(
                entry: .addresses(addresses), expires: now + min(max(lifetime, range.lowerBound), range.upperBound),
                number: nextNumber), name)
    }

    mutating func keep(_ refusal: WebImageError, of name: String, now: Double) {
        put(Kept(entry: .refused(refusal), expires: now + Self.refusalLifetime, number: nextNumber), name)
    }

    private mutating func put(_ new: Kept, _ name: String) {
        kept[name] = new
        order.append((name, nextNumber))
        nextNumber += 1
        // A name that was kept again has its older places in the order still.
        while kept.count > capacity || order.count > 2 * capacity, let oldest = order.popFirst() {
            if kept[oldest.name]?.number == oldest.number { kept[oldest.name] = nil }
        }
    }
}
