/// What scheme, host and port of a request say by themselves: worked out once for all requests to them, because most of a list's URLs
/// share their sites with many others. Used only on the downloader's thread.
final class RequestSite {
    /// The host that limits count: its name, with its port unless 80 or 443.
    let host: String
    /// The name that has to be resolved, as curl's cache has it; nil for an address.
    let name: String?
    /// The address, if the host is one in its usual spelling.
    let address: IPAddress?
    /// Whether it is an address that the operator has opened.
    let isOpened: Bool

    fileprivate init(_ request: RequestURL, policy: AddressPolicy) {
        host = request.port == 80 || request.port == 443 ? request.host : "\(request.host):\(request.port)"
        name = LookupHost(request).name
        address = name == nil ? request.literalAddress : nil
        isOpened = address.map { policy.opens($0, port: request.port) } ?? false
    }
}

/// The sites of a downloader's requests. Used only on the downloader's thread.
final class SiteBook {
    private let policy: AddressPolicy
    private var sites: [ByteText: RequestSite] = [:]
    /// Beyond this number all are dropped, and worked out again when they are needed.
    private static let most = 16_384

    init(_ policy: AddressPolicy) { self.policy = policy }

    func site(of request: RequestURL) -> RequestSite {
        if let known = sites[request.origin] { return known }
        if sites.count >= Self.most { sites.removeAll(keepingCapacity: true) }
        let site = RequestSite(request, policy: policy)
        sites[request.origin] = site
        return site
    }
}
