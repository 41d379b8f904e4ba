internal import DequeModule

/// How many transfers there are to each address with its port, and which hosts wait for one to end: ten thousand names of one small server
/// are one address. Used only on the downloader's thread.
final class AddressSlots {
    private final class Record {
        /// The lowest limit of its operations.
        var limit: Int
        var running = 0
        var waiting = 0
        /// Hosts whose operations wait for a transfer to this address to end, each once, the first to ask in front.
        var hosts: Deque<String> = []
        var listed: Set<String> = []

        init(limit: Int) { self.limit = limit }
    }

    /// A process starts the first of so many transfers that all may have to an address without asking: two of 64.
    private static let unshared = 32

    private var records: [String: Record] = [:]
    /// Addresses that may have room for hosts that wait for it.
    private var changed: Set<String> = []

    /// The key of an address, as in ``HostShares`` behind `addr:`.
    static func key(_ address: IPAddress, port: Int) -> String {
        // The kernel connects to a mapped address over IPv4.
        let isMapped = address.isIPv6 && address.high == 0 && address.low >> 32 == 0xffff
        let place = isMapped ? address.embedded.first ?? address : address
        return place.isIPv6 ? "[\(place)]:\(port)" : "\(place):\(port)"
    }

    /// The name under which an address has its share of the transfers of all processes.
    static func share(_ address: String) -> String { "addr:" + address }

    var isEmpty: Bool { records.isEmpty }

    func enqueue(_ address: String, limit: Int) {
        let record = records[address] ?? Record(limit: limit)
        records[address] = record
        record.limit = min(record.limit, limit)
        record.waiting += 1
    }

    /// Whether a transfer may start now. If not, ``takeHost(shares:now:)`` returns the host when one may.
    func mayBegin(_ address: String?, of host: String, shares: HostShares?, now: Double) -> Bool {
        guard let address, let record = records[address] else { return true }
        if hasRoom(address, record, shares, now) { return true }
        if record.listed.insert(host).inserted { record.hosts.append(host) }
        return false
    }

    private func hasRoom(_ address: String, _ record: Record, _ shares: HostShares?, _ now: Double) -> Bool {
        guard record.running < record.limit else { return false }
        let share = Self.share(address)
        // Most addresses of a list have few URLs: to ask the other processes about each of them would cost more than its transfer.
        if record.running < record.limit / Self.unshared, shares?.knows(share) == false { return true }
        return shares?.mayBegin(share, limit: record.limit, running: record.running, now: now) ?? true
    }

    func begin(_ address: String) {
        records[address]?.waiting -= 1
        records[address]?.running += 1
    }

    func end(_ address: String, shares: HostShares?, now: Double) {
        guard let record = records[address] else { return }
        record.running -= 1
        shares?.didEnd(Self.share(address), load: (record.running, record.waiting), now: now)
        changed.insert(address)
        if record.running == 0 && record.waiting == 0 { records[address] = nil }
    }

    /// A host to examine again, because an address that it waits for has room; nil if there is none. It is not listed any more.
    func takeHost(shares: HostShares?, now: Double) -> String? {
        while let address = changed.first {
            if let record = records[address], !record.hosts.isEmpty, hasRoom(address, record, shares, now) {
                let host = record.hosts.removeFirst()
                record.listed.remove(host)
                return host
            }
            changed.remove(address)
        }
        return nil
    }

    /// Its share has changed.
    func didGrant(share: String) {
        guard let address = Self.address(ofShare: share), records[address] != nil else { return }
        changed.insert(address)
    }

    /// The transfers of a share, and how many more there could be; nil if it is none of an address in use. A host may be called `addr:80`.
    func load(ofShare share: String) -> HostShares.Load? {
        Self.address(ofShare: share).flatMap { records[$0] }.map { ($0.running, $0.waiting) }
    }

    private static func address(ofShare share: String) -> String? {
        share.hasPrefix("addr:") ? String(share.dropFirst(5)) : nil
    }

    func isFull(_ address: String) -> Bool { records[address].map { $0.running >= $0.limit } ?? false }

    /// Nothing waits any more.
    func removeAll() {
        changed = []
        for (address, record) in records {
            record.waiting = 0
            record.hosts = []
            record.listed = []
            if record.running == 0 { records[address] = nil }
        }
    }
}
