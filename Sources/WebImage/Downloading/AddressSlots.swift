internal import DequeModule

/// An address with its port, while operations wait for it or have transfers to it (``AddressSlots``).
final class LimitedAddress {
    let endpoint: Endpoint
    /// The name under which it has its share of the transfers of all processes; nil: they were not asked yet.
    fileprivate(set) var share: String?
    /// The lowest limit of its operations.
    fileprivate(set) var limit: Int
    fileprivate(set) var running = 0
    fileprivate var waiting = 0
    /// Hosts whose operations wait for a transfer to this address to end, each once, the first to ask in front.
    fileprivate var hosts: Deque<String> = []
    fileprivate var listed: Set<ByteText> = []
    /// Whether it is among those that may have room.
    fileprivate var isChanged = false

    fileprivate init(_ endpoint: Endpoint, limit: Int) { (self.endpoint, self.limit) = (endpoint, limit) }

    var isFull: Bool { running >= limit }
}

/// How many transfers there are to each address with its port, and which hosts wait for one to end: ten thousand names of one small server
/// are one address. Used only on the downloader's thread.
final class AddressSlots {
    private static let shareMark = "addr:"
    /// A process starts the first of so many transfers that all may have to an address without asking: two of 64.
    private static let unshared = 32

    private var addresses: [Endpoint: LimitedAddress] = [:]
    /// Those of which the other processes were asked, by the names of their shares.
    private var shared: [ByteText: LimitedAddress] = [:]
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
        func enqueue(_ address: inout LimitedAddress) -> LimitedAddress {
            address.limit = min(address.limit, limit)
            address.waiting += 1
            return address
        }
        return enqueue(&addresses[endpoint, default: LimitedAddress(endpoint, limit: limit)])
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
        let share = Self.shareMark + address.endpoint.description
        address.share = share
        shared[share] = address
        return share
    }

    func begin(_ address: LimitedAddress) {
        address.waiting -= 1
        address.running += 1
    }

    func end(_ address: LimitedAddress, shares: HostShares?, now: Double) {
        address.running -= 1
        if let share = address.share {
            shares?.didEnd(share, load: (address.running, address.waiting), now: now)
        }
        if address.running == 0 && address.waiting == 0 {
            remove(address)
        } else {
            didChange(address)
        }
    }

    private func remove(_ address: LimitedAddress) {
        addresses[address.endpoint] = nil
        if let share = address.share { shared[share] = nil }
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

    /// Its share has changed.
    func didGrant(share: String) {
        if let address = shared[share] { didChange(address) }
    }

    /// The transfers of a share, and how many more there could be; nil if it is none of an address in use. A host may be called `addr:80`.
    func load(ofShare share: String) -> HostShares.Load? {
        shared[share].map { ($0.running, $0.waiting) }
    }

    /// Nothing waits any more.
    func removeAll() {
        for address in changed { address.isChanged = false }
        changed = []
        for address in addresses.values {
            address.waiting = 0
            address.hosts = []
            address.listed = []
            if address.running == 0 { remove(address) }
        }
    }
}
