internal import Prefetch
internal import WebImage

/// Whether a list asks servers of others who are not told whom to write to.
enum ContactNote {
    /// The note; nil where a contact or a User-Agent is given, or the first lines are all of hosts that nobody else has.
    static func line(
        for list: ListStream, _ requests: RequestSettings, _ fetch: FetchSettings
    ) async throws(PrefetchError) -> String? {
        let isNamed = (fetch.headers + (requests.headers ?? [])).contains {
            RequestSettings.header($0)?.isNamed("user-agent") == true
        }
        guard requests.contact == nil, !isNamed else { return nil }
        let named = fetch.connectTo.compactMap { $0.split(separator: ":").first.map(String.init) }
        var found: String?
        var looked = 0
        try await BatchEntries(list).forEachPresent { entry throws(PrefetchError) in
            looked += 1
            if let request = try? RequestURL(entry.url), isForeign(request), !named.contains(request.host) {
                found = request.host
            }
            return found == nil && looked < maxLines
        }
        guard let found else { return nil }
        return
            "note: \(TerminalText.escaped(found)) and others see \(WebImage.userAgent(contact: nil)) without a contact address; "
            + "give one: --contact you@example.org"
    }

    private static let maxLines = 1_000

    /// Top-level names that are nobody's on the Internet (RFC 2606, 6761, 6762, 8375, 9476) and those of home networks.
    private static let own: Set<Substring> = [
        "alt", "arpa", "example", "home", "internal", "invalid", "lan", "local", "localhost", "onion", "test",
    ]

    private static func isForeign(_ request: RequestURL) -> Bool {
        if let address = request.literalAddress {
            return AddressPolicy().refusal(of: address, port: request.port) == nil
        }
        let labels = request.host.split(separator: ".")
        guard labels.count > 1, let last = labels.last else { return false }
        return !own.contains(last)
    }
}
