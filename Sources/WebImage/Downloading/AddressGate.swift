/// Checks the host of a request, and the addresses of its name before curl gets them. The socket callback (``CurlHandle``) checks those that
/// are dialled.
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
    func admit(_ request: RequestURL, of site: RequestSite) throws(WebImageError) -> Bool {
        if let message = closed.refusal(ofName: request.host, port: request.port) {
            throw WebImageError(.refused, message, reason: .queueRedis)
        }
        let isNamed = isNamed(request, site)
        guard usesProxy else { return isNamed }
        try admitBehindProxy(request, isAddressOverridden: isNamed)
        return true
    }

    /// In the URL's spelling, or for an international name in curl's.
    private func isNamed(_ request: RequestURL, _ site: RequestSite) -> Bool {
        guard !named.isEmpty else { return false }
        if named.contains(where: { $0.matches(request.host, port: request.port) }) { return true }
        guard let name = site.name, name != request.host else { return false }
        return named.contains { $0.matches(name, port: request.port) }
    }

    /// Whether the host's name has to be resolved here: not if curl gets its address from the operator or from the URL, or asks a proxy, and
    /// not if ``admit(_:of:)`` refuses it.
    func name(toResolve request: RequestURL, of site: RequestSite) -> String? {
        guard let name = site.name, !usesProxy, !isNamed(request, site),
            closed.refusal(ofName: request.host, port: request.port) == nil
        else { return nil }
        return name
    }

    /// Those of a name's addresses that may be connected to.
    /// - Throws: `refused` if none may.
    func permitted(_ addresses: [IPAddress], port: Int) throws(WebImageError) -> [IPAddress] {
        var refused: [IPAddress] = []
        var last: WebImageError?
        for address in addresses {
            guard let refusal = refusal(of: address, port: port) else { continue }
            refused.append(address)
            last = refusal
        }
        guard let last else { return addresses }
        guard refused.count < addresses.count else { throw last }
        return addresses.filter { !refused.contains($0) }
    }

    private func refusal(of address: IPAddress, port: Int) -> WebImageError? {
        if let denial = denial(of: address, port: port) { return denial }
        guard let message = policy.refusal(of: address, port: port) else { return nil }
        var refusal = WebImageError(.refused, message, reason: .closedNetwork)
        refusal.refusedAddress = Endpoint(address, port: port).description
        return refusal
    }

    /// Of what `--allow-net` does not open.
    private func denial(of address: IPAddress, port: Int) -> WebImageError? {
        AddressRefusal(policy, closed, of: address, port: port).map {
            WebImageError(.refused, $0.message, reason: $0.reason)
        }
    }

    /// Names that only the proxy can resolve are left to the proxy.
    private func admitBehindProxy(_ request: RequestURL, isAddressOverridden: Bool) throws(WebImageError) {
        let addresses: [IPAddress]
        let target = try ProxyTarget(request)
        switch target {
        case .name:
            guard !isAddressOverridden, let message = policy.refusal(ofName: request.host, port: request.port) else {
                return
            }
            throw WebImageError(.refused, message, reason: .closedNetwork)
        case .address(let address): addresses = [address]
        case .loopbackName: addresses = ["127.0.0.1", "::1"].compactMap { IPAddress($0) }
        }
        let port = request.port
        for address in addresses {
            if let denial = denial(of: address, port: port) { throw denial }
        }
        let messages = addresses.compactMap { policy.refusal(of: $0, port: port) }
        // As without a proxy, a name is allowed if one of its addresses is.
        guard !isAddressOverridden, messages.count == addresses.count else { return }
        let message = target == .loopbackName ? "\(request.host) is a loopback name" : messages[0]
        var error = WebImageError(.refused, message, reason: .closedNetwork)
        error.refusedAddress = Endpoint(addresses[0], port: port).description
        throw error
    }
}
