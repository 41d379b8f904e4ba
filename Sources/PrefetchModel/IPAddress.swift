internal import Glibc

package struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// Address family; an IPv4 address occupies the lowest 32 bits.
    package let isIPv6: Bool
    package let high: UInt64
    package let low: UInt64

    init(isIPv6: Bool, high: UInt64, low: UInt64) {
        self.isIPv6 = isIPv6
        self.high = high
        self.low = low
    }

    init(v4 bits: UInt32) {
        self.init(isIPv6: false, high: 0, low: UInt64(bits))
    }

    /// Parses the form inet_pton(3) accepts: no abbreviated IPv4, no zone.
    package init?(_ text: some StringProtocol) {
        let text = String(text)
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            self.init(v4: UInt32(bigEndian: v4.s_addr))
        } else if inet_pton(AF_INET6, text, &v6) == 1 {
            self = withUnsafeBytes(of: v6) { IPAddress(v6: $0) }
        } else {
            return nil
        }
    }

    private init(v6 bytes: UnsafeRawBufferPointer) {
        self.init(
            isIPv6: true, high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }

    /// The address and port of a `sockaddr`; nil for another family.
    package static func parse(socketAddress: UnsafeRawPointer) -> (address: IPAddress, port: Int)? {
        switch Int32(socketAddress.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET:
            let address = socketAddress.loadUnaligned(as: sockaddr_in.self)
            return (
                IPAddress(v4: UInt32(bigEndian: address.sin_addr.s_addr)), Int(in_port_t(bigEndian: address.sin_port))
            )
        case AF_INET6:
            let address = socketAddress.loadUnaligned(as: sockaddr_in6.self)
            return (
                withUnsafeBytes(of: address.sin6_addr) { IPAddress(v6: $0) },
                Int(in_port_t(bigEndian: address.sin6_port))
            )
        default: return nil
        }
    }

    /// The IPv4 addresses that an IPv6 address embeds, where a packet to it may end. All of them are checked.
    package var embedded: [IPAddress] {
        guard isIPv6 else { return [] }
        let last = UInt32(truncatingIfNeeded: low)
        // IPv4-compatible, IPv4-mapped (RFC 4291), IPv4-translated (RFC 2765).
        if high == 0 && (low >> 32 == 0 || low >> 32 == 0xffff) { return [IPAddress(v4: last)] }
        if high == 0 && low >> 48 == 0xffff { return [IPAddress(v4: last)] }
        // NAT64 (RFC 6052).
        if high == 0x0064_ff9b_0000_0000 && low >> 32 == 0 { return [IPAddress(v4: last)] }
        // 6to4 (RFC 3056).
        if high >> 48 == 0x2002 { return [IPAddress(v4: UInt32(truncatingIfNeeded: high >> 16))] }
        // Teredo (RFC 4380): the server, and the client's address inverted.
        if high >> 32 == 0x2001_0000 {
            return [IPAddress(v4: UInt32(truncatingIfNeeded: high)), IPAddress(v4: ~last)]
        }
        // ISATAP (RFC 5214).
        if low >> 32 == 0x0000_5efe || low >> 32 == 0x0200_5efe { return [IPAddress(v4: last)] }
        return []
    }

    package var description: String {
        guard isIPv6 else {
            // Needed for each transfer: inet_ntop(3) takes 15 times the instructions.
            return String(unsafeUninitializedCapacity: 15) { text in
                var length = 0
                func append(_ byte: UInt8) {
                    text[length] = byte
                    length += 1
                }
                for shift in [24, 16, 8, 0] as [UInt64] {
                    let byte = UInt8(truncatingIfNeeded: low >> shift)
                    if shift < 24 { append(UInt8(ascii: ".")) }
                    if byte >= 100 { append(UInt8(ascii: "0") + byte / 100) }
                    if byte >= 10 { append(UInt8(ascii: "0") + byte / 10 % 10) }
                    append(UInt8(ascii: "0") + byte % 10)
                }
                return length
            }
        }
        return String(unsafeUninitializedCapacity: Int(INET6_ADDRSTRLEN)) { text in
            var bytes = (high.bigEndian, low.bigEndian)
            return text.withMemoryRebound(to: CChar.self) { text in
                inet_ntop(AF_INET6, &bytes, text.baseAddress, socklen_t(INET6_ADDRSTRLEN)).map(strlen) ?? 0
            }
        }
    }
}
