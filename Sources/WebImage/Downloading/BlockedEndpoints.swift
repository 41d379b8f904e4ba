internal import Glibc
internal import Threading

/// Addresses that are never connected to, overriding every ``AddressPolicy``, each with a reason. They may be added from any thread during
/// downloads, and apply to later connections and requests.
package final class BlockedEndpoints: Sendable {
    private struct Place: Hashable {
        let host: ByteText
        let port: Int
    }

    private struct State {
        var addresses: [IPAddress: [Int: String]] = [:]
        /// Keyed by host name, in lower case without a final dot.
        var names: [Place: String] = [:]
        /// Keyed by port: closed on every address of this machine.
        var machine: [Int: String] = [:]
    }

    private let state = Locked(State())

    /// Closes a port of an address, or of a host name in URLs, whatever it resolves to.
    package func close(_ host: String, port: Int, reason: String) {
        state.withLock { state in
            if let address = IPAddress(host) {
                state.addresses[address, default: [:]][port] = reason
            } else {
                state.names[Place(host: ByteText(Self.bare(host)), port: port)] = reason
            }
        }
    }

    /// Closes a port on every address of this machine, because servers usually listen on all of them.
    package func blockOnThisMachine(port: Int, reason: String) {
        state.withLock { $0.machine[port] = reason }
    }

    package var isEmpty: Bool {
        state.withLock { $0.addresses.isEmpty && $0.names.isEmpty && $0.machine.isEmpty }
    }

    package func refusal(of address: IPAddress, port: Int) -> String? {
        let (addresses, machine) = state.withLock { ($0.addresses, $0.machine[port]) }
        guard machine != nil || !addresses.isEmpty else { return nil }
        let all = [address] + address.embedded
        let reason =
            all.lazy.compactMap { addresses[$0]?[port] }.first
            ?? machine.flatMap { reason in all.contains(where: Self.isOfThisMachine) ? reason : nil }
        return reason.map { "\(address) port \(port) is \($0)" }
    }

    package func refusal(ofName host: String, port: Int) -> String? {
        // Asked for each request, and there are hardly ever any.
        state.withLock { $0.names.isEmpty ? nil : $0.names[Place(host: ByteText(Self.bare(host)), port: port)] }
            .map { "\(host) port \(port) is \($0)" }
    }

    private static func bare(_ host: String) -> String {
        let host = host.asciiLowercased
        return host.utf8.last == UInt8(ascii: ".") ? String(Substring(host.utf8.dropLast())) : host
    }

    /// Loopback, the unspecified addresses (which connect(2) treats as loopback), and the current addresses of the interfaces.
    private static func isOfThisMachine(_ address: IPAddress) -> Bool {
        if own.contains(where: { $0.contains(address) }) { return true }
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return false }
        defer { freeifaddrs(first) }
        var next = first
        while let interface = next {
            if let place = interface.pointee.ifa_addr, IPAddress.parse(socketAddress: place)?.address == address {
                return true
            }
            next = interface.pointee.ifa_next
        }
        return false
    }

    private static let own = ["127.0.0.0/8", "0.0.0.0/8", "::1", "::"].compactMap { CIDR($0) }
}
