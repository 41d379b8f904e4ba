/// An address with its port.
struct Endpoint: Hashable, CustomStringConvertible {
    let address: IPAddress
    let port: Int

    init(_ address: IPAddress, port: Int) { (self.address, self.port) = (address, port) }

    /// `ADDRESS:PORT` or `[ADDRESS]:PORT`.
    var description: String { address.isIPv6 ? "[\(address)]:\(port)" : "\(address):\(port)" }
}
