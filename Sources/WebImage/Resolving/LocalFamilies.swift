internal import Glibc

/// The families of addresses that this machine can connect to: those of which an interface has an address beyond the link. Looked at once
/// a minute, since networks come and go.
struct LocalFamilies {
    private static let interval = 60.0
    private let allowed: [AddressFamily]
    private var known: [AddressFamily] = []
    private var expires = -Double.infinity

    /// * `allowed`: a single family is used whatever the machine has.
    init(_ allowed: [AddressFamily]) { self.allowed = allowed }

    /// At least one.
    mutating func families(now: Double) -> [AddressFamily] {
        guard allowed.count > 1 else { return allowed }
        if now < expires { return known }
        expires = now + Self.interval
        let found = Self.found()
        known = allowed.filter { found.contains($0) }
        // Without any network only this machine can be reached, which is usually by IPv4.
        if known.isEmpty { known = [.v4] }
        return known
    }

    private static func found() -> Set<AddressFamily> {
        var found: Set<AddressFamily> = []
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [.v4] }
        defer { freeifaddrs(first) }
        var next = first
        while let interface = next {
            if let place = interface.pointee.ifa_addr, let address = IPAddress.parse(socketAddress: place)?.address,
                !isOfTheLink(address)
            {
                found.insert(address.isIPv6 ? .v6 : .v4)
            }
            next = interface.pointee.ifa_next
        }
        return found
    }

    /// Loopback and link-local addresses: 127.0.0.0/8, 169.254.0.0/16, ::1, fe80::/10.
    private static func isOfTheLink(_ address: IPAddress) -> Bool {
        guard address.isIPv6 else { return address.low >> 24 == 127 || address.low >> 16 == 0xa9fe }
        return address.high == 0 && address.low == 1 || address.high >> 54 == 0x3fa
    }
}
