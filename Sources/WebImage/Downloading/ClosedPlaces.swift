internal import Glibc
internal import Threading

/// Places that are not connected to whatever an ``AddressPolicy`` opens, each with the reason. They are added while downloads run, from
/// any thread, and hold for every connection and request that begins afterwards.
package final class ClosedPlaces: Sendable {
    private struct Place: Hashable {
        let host: String
        let port: Int
    }

    private struct State {
        var addresses: [IPAddress: [Int: String]] = [:]
        /// By host name, in lower case and without a final dot.
        var names: [Place: String] = [:]
        /// By port, at every address of this machine.
        var machine: [Int: String] = [:]
    }

    private let state = Locked(State())

    /// Closes a port of an address, or of a name: as the host of a URL, whatever it resolves to.
    package func close(_ host: String, port: Int, reason: String) {
        state.withLock { state in
            if let address = IPAddress(host) {
                state.addresses[address, default: [:]][port] = reason
            } else {
                state.names[Place(host: Self.bare(host), port: port)] = reason
            }
        }
    }

    /// Closes a port at every address of this machine: a server on one of them usually listens on all.
    package func closeOnThisMachine(port: Int, reason: String) {
        state.withLock { $0.machine[port] = reason }
    }

    /// Whether nothing is closed.
    package var isEmpty: Bool {
        state.withLock { $0.addresses.isEmpty && $0.names.isEmpty && $0.machine.isEmpty }
    }

    /// Why a connection is refused; nil where nothing closes it.
    package func refusal(of address: IPAddress, port: Int) -> String? {
        let (addresses, machine) = state.withLock { ($0.addresses, $0.machine) }
        let all = [address] + address.embedded
        let reason =
            all.lazy.compactMap { addresses[$0]?[port] }.first
            ?? machine[port].flatMap { reason in all.contains(where: Self.isOfThisMachine) ? reason : nil }
        return reason.map { "\(address) port \(port) is \($0)" }
    }

    /// Why the host of a URL is refused; nil where nothing closes it by this name.
    package func refusal(ofName host: String, port: Int) -> String? {
        state.withLock { $0.names[Place(host: Self.bare(host), port: port)] }.map { "\(host) port \(port) is \($0)" }
    }

    private static func bare(_ host: String) -> String {
        let host = host.lowercased()
        return host.hasSuffix(".") ? String(host.dropLast()) : host
    }

    /// Loopback, the unspecified addresses (connect(2) takes them for loopback), and what the interfaces have at this moment.
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
