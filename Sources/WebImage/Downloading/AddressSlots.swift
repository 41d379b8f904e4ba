internal import DequeModule

/// The transfers to an address with its port that have one limit, and the operations that wait for one.
final class LimitedAddress {
    fileprivate let total: AddressTotal
    let limit: Int
    fileprivate(set) var running = 0
    fileprivate var waiting = 0
    /// The name of its share; nil: the other processes were not asked yet.
    fileprivate var share: String?
    /// Hosts whose operations wait for a transfer to this address to end, each once, the first to ask in front.
    fileprivate var hosts: Deque<String> = []
    fileprivate var listed: Set<ByteText> = []
    /// Whether it is among those that may have room.
    fileprivate var isChanged = false

    fileprivate init(_ total: AddressTotal, limit: Int) { (self.total, self.limit) = (total, limit) }

    var endpoint: Endpoint { total.endpoint }
    var isFull: Bool { running >= limit || total.running >= total.most }
}

/// All transfers to an address: at most as many as the highest limit says.
private final class AddressTotal {
    let endpoint: Endpoint
    fileprivate var limited: [LimitedAddress] = []
    fileprivate var running = 0
    fileprivate var most = 0
    /// The name under which processes share its transfers; nil: they were not asked yet.
    fileprivate var share: String?

    init(_ endpoint: Endpoint) { self.endpoint = endpoint }
}

/// How many transfers there are to each address with its port, and which hosts wait for one to end: ten thousand names of one small server
/// are one address. Used only on the downloader's thread.
final class AddressSlots {
    private static let shareMark = "addr:"
    /// A process starts the first of so many transfers that all may have to an address without asking: two of 64.
    private static let unshared = 32

    private var addresses: [Endpoint: AddressTotal] = [:]
    /// Those of which the other processes were asked, by the names of their shares.
    private var shared: [ByteText: AddressTotal] = [:]
    /// Addresses that may have room for hosts that wait for it.
    private var changed: [LimitedAddress] = []

    /// Where the kernel connects to: to a mapped address over IPv4.
    static func endpoint(of address: IPAddress, port: Int) -> Endpoint {
        let isMapped = address.isIPv6 && address.high == 0 && address.low >> 32 == 0xffff
        return Endpoint(isMapped ? address.embedded.first ?? address : address, port: port)
    }

    var isEmpty: Bool { addresses.isEmpty }

    /// An operation waits for the address from here on.
    func enqueue(_ endpoint: Endpoint, limit: Int) -> LimitedAddress {
        let total: AddressTotal
        if let known = addresses[endpoint] {
            total = known
        } else {
            total = AddressTotal(endpoint)
            addresses[endpoint] = total
        }
        let address: LimitedAddress
        if let known = total.limited.first(where: { $0.limit == limit }) {
            address = known
        } else {
            address = LimitedAddress(total, limit: limit)
            // Those with another limit may have room now.
            if limit > total.most { for other in total.limited { didChange(other) } }
            total.limited.append(address)
            total.most = max(total.most, limit)
        }
        address.waiting += 1
        return address
    }

    /// Whether a transfer may start now. If not, ``takeHost(shares:now:)`` returns the host when one may.
    func mayBegin(_ address: LimitedAddress?, of host: String, shares: HostShares?, now: Double) -> Bool {
        guard let address, !hasRoom(address, shares, now) else { return true }
        if address.listed.insert(host).inserted { address.hosts.append(host) }
        return false
    }

    private func hasRoom(_ address: LimitedAddress, _ shares: HostShares?, _ now: Double) -> Bool {
        guard !address.isFull else { return false }
        guard let shares else { return true }
        // Most addresses of a list have few URLs: to ask the other processes about each of them would cost more than its transfer.
        if address.share == nil, address.running < address.limit / Self.unshared { return true }
        return shares.mayBegin(share(of: address), limit: address.limit, running: address.running, now: now)
    }

    private func share(of address: LimitedAddress) -> String {
        if let share = address.share { return share }
        let total = address.total
        let share = total.share ?? Self.shareMark + total.endpoint.description
        (address.share, total.share) = (share, share)
        shared[share] = total
        return share
    }

    func begin(_ address: LimitedAddress) {
        address.waiting -= 1
        address.running += 1
        address.total.running += 1
    }

    func end(_ address: LimitedAddress, shares: HostShares?, now: Double) {
        address.running -= 1
        address.total.running -= 1
        if let share = address.share {
            shares?.didEnd(share, limit: address.limit, load: Self.load(of: address), now: now)
        }
        removeUnused(address)
        for address in address.total.limited { didChange(address) }
    }

    /// An operation that waited for it has ended.
    func leave(_ address: LimitedAddress, shares: HostShares?, now: Double) {
        address.waiting -= 1
        if let share = address.share {
            shares?.didLeave(share, limit: address.limit, load: Self.load(of: address), now: now)
        }
        removeUnused(address)
    }

    private static func load(of address: LimitedAddress) -> HostShares.Load { (address.running, address.waiting) }

    private func removeUnused(_ address: LimitedAddress) {
        guard address.running == 0 && address.waiting == 0 else { return }
        (address.hosts, address.listed) = ([], [])
        let total = address.total
        total.limited.removeAll { $0 === address }
        total.most = total.limited.reduce(0) { max($0, $1.limit) }
        guard total.limited.isEmpty else { return }
        addresses[total.endpoint] = nil
        if let share = total.share { shared[share] = nil }
    }

    private func didChange(_ address: LimitedAddress) {
        guard !address.isChanged else { return }
        address.isChanged = true
        changed.append(address)
    }

    /// A host to examine again, because an address that it waits for has room; nil if there is none. It is not listed any more.
    func takeHost(shares: HostShares?, now: Double) -> String? {
        while let address = changed.last {
            if !address.hosts.isEmpty, hasRoom(address, shares, now) {
                let host = address.hosts.removeFirst()
                address.listed.remove(host)
                return host
            }
            address.isChanged = false
            changed.removeLast()
        }
        return nil
    }

    /// A share has changed.
    func didGrant(share: String) {
        for address in shared[share]?.limited ?? [] { didChange(address) }
    }

    /// The transfers of a share, and how many more there could be; nil if it is none of an address in use. A host may be called `addr:80`.
    func load(ofShare share: String, limit: Int) -> HostShares.Load? {
        shared[share].map { total in total.limited.first { $0.limit == limit }.map(Self.load) ?? (0, 0) }
    }
}
