/// Sums up the histories per URL of a batch. About 30 bytes per URL, more for the few that were reported twice.
struct HistoryTally {
    struct Entry: Equatable {
        /// Reports confirmed as the first: their outcome, and the Redis start.
        var confirmations: [(code: UInt8, server: Int)] = []
        /// One bit for each reported outcome, confirmed or not.
        var sent: UInt32 = 0
        var hadSeveralWorkers = false
        var wasClaimed = false

        func wasSent(_ code: UInt8) -> Bool { code < 32 && sent & (1 << UInt32(code)) != 0 }

        static func == (lhs: Entry, rhs: Entry) -> Bool {
            lhs.sent == rhs.sent && lhs.hadSeveralWorkers == rhs.hadSeveralWorkers && lhs.wasClaimed == rhs.wasClaimed
                && lhs.confirmations.elementsEqual(rhs.confirmations) { $0 == $1 }
        }
    }

    private static let nobody: Int32 = -1
    private static let several: Int32 = -2
    /// Indices further beyond the batch's end need no examples of their own.
    private static let slack = 1 << 16

    private let most: Int
    private var sent: [UInt32]
    private var claimedBy: [Int32]
    private var firstCode: [UInt8]
    private var firstServer: [Int32]
    private var more: [Int: [(code: UInt8, server: Int)]] = [:]

    var count: Int { sent.count }

    init(count: Int) {
        most = count + Self.slack
        sent = Array(repeating: 0, count: count)
        claimedBy = Array(repeating: Self.nobody, count: count)
        firstCode = Array(repeating: 0, count: count)
        firstServer = Array(repeating: Self.nobody, count: count)
    }

    mutating func add(_ event: HistoryEvent) {
        switch event.kind {
        case .claimed:
            grow(to: event.range.upperBound)
            var settled = event.items.makeIterator()
            var next = settled.next()
            for index in event.range where index < count {
                if next?.index == index {
                    next = settled.next()
                    continue
                }
                if claimedBy[index] == Self.nobody {
                    claimedBy[index] = Int32(truncatingIfNeeded: event.worker)
                } else if claimedBy[index] != Int32(truncatingIfNeeded: event.worker) {
                    claimedBy[index] = Self.several
                }
            }
        case .sent:
            for (index, code) in event.items where prepare(index) && code < 32 { sent[index] |= 1 << UInt32(code) }
        case .confirmed(let server):
            for (index, code) in event.items where prepare(index) {
                if firstServer[index] == Self.nobody {
                    (firstCode[index], firstServer[index]) = (code, Int32(truncatingIfNeeded: server))
                } else {
                    more[index, default: []].append((code, server))
                }
            }
        }
    }

    subscript(index: Int) -> Entry {
        var entry = Entry()
        entry.sent = sent[index]
        entry.hadSeveralWorkers = claimedBy[index] == Self.several
        entry.wasClaimed = claimedBy[index] != Self.nobody
        if firstServer[index] != Self.nobody {
            entry.confirmations = [(firstCode[index], Int(firstServer[index]))] + (more[index] ?? [])
        }
        return entry
    }

    private mutating func prepare(_ index: Int) -> Bool {
        grow(to: index + 1)
        return index < count
    }

    private mutating func grow(to wanted: Int) {
        let extra = min(wanted, most) - count
        guard extra > 0 else { return }
        sent += Array(repeating: 0, count: extra)
        claimedBy += Array(repeating: Self.nobody, count: extra)
        firstCode += Array(repeating: 0, count: extra)
        firstServer += Array(repeating: Self.nobody, count: extra)
    }
}
