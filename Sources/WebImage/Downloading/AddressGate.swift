/// Which addresses a request may go to, as far as that is known before its name is resolved. Those that are dialled, the socket's
/// callback judges (``CurlHandle``).
struct AddressGate {
    private let policy: AddressPolicy
    private let closed: ClosedPlaces
    private let usesProxy: Bool
    /// What the operator has given an address.
    private let named: [NamedPlace]

    init(_ configuration: ImageDownloader.Configuration, closed: ClosedPlaces) {
        policy = configuration.addressPolicy
        self.closed = closed
        usesProxy = configuration.proxy != nil
        named = (configuration.connectTo + configuration.resolve).compactMap(NamedPlace.init)
    }

    /// Judges a request's host. Behind a proxy only the proxy is dialled, so that what the URL names is judged here.
    /// - Returns: whether the operator named the address that is dialled.
    /// - Throws: `refused`; behind a proxy `invalidURL`.
    func admit(_ request: RequestURL) throws(WebImageError) -> Bool {
        if let reason = closed.refusal(ofName: request.host, port: request.port) {
            throw WebImageError(.refused, reason)
        }
        let isNamed = named.contains { $0.matches(request) }
        guard usesProxy else { return isNamed }
        try admitBehindProxy(request, isNamedByOperator: isNamed)
        return true
    }

    /// A name that only the proxy can resolve is the proxy's to judge.
    private func admitBehindProxy(_ request: RequestURL, isNamedByOperator: Bool) throws(WebImageError) {
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
        // A name is open where one of its addresses is, as it is without a proxy.
        guard !isNamedByOperator, reasons.count == addresses.count else { return }
        let reason = target == .loopbackName ? "\(request.host) is a loopback name" : reasons[0]
        var error = WebImageError(.refused, reason)
        error.refusedAddress = addresses[0].isIPv6 ? "[\(addresses[0])]:\(port)" : "\(addresses[0]):\(port)"
        throw error
    }
}
