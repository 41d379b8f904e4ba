/// Which addresses a download may connect to: the public Internet and explicitly allowed blocks.
///
/// `CurlHandle.openSocket` applies it to every dialled address, after name resolution and on every hop, so that names resolving to private
/// addresses, redirects and unusual spellings (`0x7f.1`, `[::ffff:127.0.0.1]`) cannot bypass it. An IPv6 address that embeds an IPv4 one
/// (mapped, NAT64, 6to4, Teredo, ISATAP) is checked for both.
public struct AddressPolicy: Sendable, Equatable {
    /// Private blocks to allow. With a port a block allows only that one, whatever the service; without, web server ports. Default: none.
    public var allow: [CIDR]
    /// Blocks to deny, overriding `allow`, `connectTo` and `resolve`. A block with a port denies only that port. Default: none.
    public var deny: [CIDR]

    /// Creates a policy that allows the given blocks in addition to the public Internet.
    public init(allow: [CIDR] = [], deny: [CIDR] = []) {
        self.allow = allow
        self.deny = deny
    }

    package func refusal(of address: IPAddress, port: Int) -> String? {
        if let reason = denial(of: address, port: port) { return reason }
        if opens(address, port: port) { return nil }
        if covers(allow, address, port) { return Self.servicePort(port, of: address) }
        if let block = Self.privateBlock(of: address) { return "\(address) is \(block)" }
        for inner in address.embedded {
            if let block = Self.privateBlock(of: inner), !opens(inner, port: port) {
                return "\(address) stands for \(inner), which is \(block)"
            }
        }
        return Self.isWebPort(port) ? nil : Self.servicePort(port, of: address)
    }

    /// Why a name whose addresses a proxy alone knows may not be asked at a port.
    package func refusal(ofName host: String, port: Int) -> String? {
        let isOpened = Self.isWebPort(port) || allow.contains { $0.port == port }
        return isOpened ? nil : "port \(port) of \(host) is not a web server's"
    }

    /// Reason if `deny` covers the address or an IPv4 address embedded in it; otherwise nil.
    package func denial(of address: IPAddress, port: Int) -> String? {
        let isDenied = deny.contains { block in
            ([address] + address.embedded).contains { block.contains($0, port: port) }
        }
        return isDenied ? "\(address) port \(port) is closed by the operator" : nil
    }

    /// Whether `allow` covers the address, or the IPv4 address that it maps.
    package func opens(_ address: IPAddress, port: Int) -> Bool {
        covers(Self.isWebPort(port) ? allow : allow.filter { $0.port != nil }, address, port)
    }

    private static func servicePort(_ port: Int, of address: IPAddress) -> String {
        "port \(port) of \(address) is not a web server's"
    }

    private func covers(_ blocks: [CIDR], _ address: IPAddress, _ port: Int) -> Bool {
        guard !blocks.isEmpty else { return false }
        if blocks.contains(where: { $0.contains(address, port: port) }) { return true }
        // Only mapped addresses: the kernel connects to them over IPv4.
        guard address.isIPv6, address.high == 0, address.low >> 32 == 0xffff, let inner = address.embedded.first else {
            return false
        }
        return blocks.contains { $0.contains(inner, port: port) }
    }

    private static func privateBlock(of address: IPAddress) -> String? {
        if address.isIPv6 {
            // Mapped and translated addresses are checked by the embedded address; ::1 and :: are handled here.
            if address.high == 0 && address.low <= 1 { return "a loopback or unspecified address" }
            // Outside 2000::/3 nothing is global unicast (RFC 4291), except for IPv4 transition prefixes.
            if address.high >> 61 != 1 && address.embedded.isEmpty { return "not a public address" }
            // An ISATAP interface identifier does not make a private network public.
            if address.high >> 61 != 1 && address.high != 0 && address.high != 0x0064_ff9b_0000_0000 {
                return "not a public address"
            }
        }
        guard let found = reserved.first(where: { $0.block.contains(address) }) else { return nil }
        return assigned.contains { $0.contains(address) } ? nil : found.name
    }

    private static func isWebPort(_ port: Int) -> Bool {
        port == 80 || port == 443 || (port >= 1024 && !servicePorts.contains(port))
    }

    /// Databases, brokers and control planes above port 1023 that might accept an HTTP request as their own protocol.
    private static let servicePorts: Set<Int> = [
        1433, 1521, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 4369, 5432, 5672, 5900, 5984, 5985, 5986, 6379,
        6380,
        6443, 7000, 7001, 8500, 9042, 9092, 9200, 9300, 10_250, 10_255, 11_211, 15_672, 16_379, 26_379, 27_017, 27_018,
        27_019,
    ]

    /// IANA's special-purpose registries (RFC 6890).
    private static let reserved: [(block: CIDR, name: String)] = [
        ("0.0.0.0/8", "an unspecified address"), ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a carrier's private address"), ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"), ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"), ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a reserved address"), ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a benchmarking address"), ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"), ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"), ("2001:2::/48", "a benchmarking address"),
        ("2001:10::/28", "a reserved address"), ("2001:20::/28", "a reserved address"),
        ("2001:db8::/32", "a documentation address"), ("3fff::/20", "a documentation address"),
        ("2001::/23", "a reserved address"),
    ].compactMap { text, name in CIDR(text).map { (block: $0, name: name) } }

    /// Of the protocol assignments (2001::/23) what is globally reachable by IANA's registry; Teredo is judged by what it stands for.
    private static let assigned: [CIDR] = [
        "2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:3::/32", "2001:4:112::/48",
    ].compactMap { CIDR($0) }
}
