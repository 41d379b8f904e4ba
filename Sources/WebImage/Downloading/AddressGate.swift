/// Checks the host of a request before its name is resolved. The socket callback (``CurlHandle``) checks the addresses that are dialled.
struct AddressGate {
    private let policy: AddressPolicy
    private let closed: BlockedEndpoints
    private let usesProxy: Bool
    private let named: [AddressOverride]

    init(_ configuration: ImageDownloader.Configuration, closed: BlockedEndpoints) {
        policy = configuration.addressPolicy
        self.closed = closed
        usesProxy = configuration.proxy != nil
        named = (configuration.connectTo + configuration.resolve).compactMap(AddressOverride.init)
    }

    /// Checks a request's host. Behind a proxy only the proxy is dialled, so the host named by the URL is checked here.
    /// - Returns: whether the operator set the address to dial.
    /// - Throws: `refused`; behind a proxy also `invalidURL`.
    func admit(_ request: RequestURL) throws(WebImageError) -> Bool {
        if let reason = closed.refusal(ofName: request.host, port: request.port) {
            throw WebImageError(.refused, reason)
        }
        let isNamed = named.contains { $0.matches(request) }
        guard usesProxy else { return isNamed }
        try admitBehindProxy(request, isAddressOverridden: isNamed)
        return true
    }

    /// Names that only the proxy can resolve are left to the proxy.
    private func admitBehindProxy(_ request: RequestURL, isAddressOverridden: Bool) throws(WebImageError) {
        let addresses: [IPAddress]
        let target = try ProxyTarget(request)
        switch target {
        case .name: return
        case .address(let address): addresses = [address]
        case .loopbackName: addresses = ["127.0.0.1", "::1"].compactMap { IPAddress($0) }
        }
        let port = request.port
        for address in addresses {
            if let reason = policy.denial(of: address, port: port) ?? closed.refusal(of: address, port: port) {
                throw WebImageError(.refused, reason)
            }
        }
        let reasons = addresses.compactMap { policy.refusal(of: $0, port: port) }
        // As without a proxy, a name is allowed if one of its addresses is.
        guard !isAddressOverridden, reasons.count == addresses.count else { return }
        let reason = target == .loopbackName ? "\(request.host) is a loopback name" : reasons[0]
        var error = WebImageError(.refused, reason)
        error.refusedAddress = addresses[0].isIPv6 ? "[\(addresses[0])]:\(port)" : "\(addresses[0]):\(port)"
        throw error
    }
}
