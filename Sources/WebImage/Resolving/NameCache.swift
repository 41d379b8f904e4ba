internal import DequeModule

/// A name, and what is known of it. Used only on the downloader's thread.
final class CachedName {
    /// In lower case, ASCII.
    let text: String
    /// The number of the question for it, while the resolver is asked.
    private(set) var question: Int?
    fileprivate var entry: NameCache.Entry?
    fileprivate var expires = -Double.infinity
    /// Of its place in the cache's order.
    fileprivate var number = 0

    fileprivate init(_ text: String) { self.text = text }

    func ask(_ question: Int) { self.question = question }

    /// It has ended, or nobody waits for it any more.
    func endQuestion() { question = nil }

    /// What is known of it; nil: nothing, or it has lapsed.
    func entry(now: Double) -> NameCache.Entry? { expires > now ? entry : nil }
}

/// The names that are asked for, and answers and refusals of the resolver, each for a bounded time. A value without a clock.
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

    /// Seconds an answer is kept, whatever its TTL: with 0 each URL of a host would ask again, with 2^31 an address would stay for ever.
    static let lifetimes = 60.0...3600.0
    /// Seconds a refusal is kept.
    static let refusalLifetime = 60.0
    private let capacity: Int
    private var names: [ByteText: CachedName] = [:]
    private var order: Deque<(name: CachedName, number: Int)> = []
    private var nextNumber = 1

    /// * `capacity`: names; beyond it the oldest goes, unless it is being asked for.
    init(capacity: Int = 65_536) { self.capacity = capacity }

    var count: Int { names.count }

    /// The name, new if the cache has none of this text. It stays until ``remove(_:)``, or until it is the oldest.
    mutating func name(_ text: String) -> CachedName {
        func element(_ name: inout CachedName) -> CachedName { name }
        return element(&names[text, default: CachedName(text)])
    }

    /// Those that are being asked for.
    var asked: [CachedName] { names.values.filter { $0.question != nil } }

    /// * `lifetime`: seconds, as the resolver said.
    mutating func keep(_ addresses: [IPAddress], of name: CachedName, lifetime: Double, now: Double) {
        let range = Self.lifetimes
        keep(.addresses(addresses), of: name, until: now + min(max(lifetime, range.lowerBound), range.upperBound))
    }

    mutating func keep(_ refusal: WebImageError, of name: CachedName, now: Double) {
        keep(.refused(refusal), of: name, until: now + Self.refusalLifetime)
    }

    mutating func keep(_ entry: Entry, of name: CachedName, until time: Double) {
        (name.entry, name.expires, name.number) = (entry, time, nextNumber)
        order.append((name, nextNumber))
        nextNumber += 1
        // A name that was kept again has its older places in the order still.
        while names.count > capacity || order.count > 2 * capacity, let oldest = order.popFirst() {
            if oldest.name.number == oldest.number, oldest.name.question == nil { remove(oldest.name) }
        }
    }

    mutating func remove(_ name: CachedName) {
        if names[name.text] === name { names[name.text] = nil }
    }
}
