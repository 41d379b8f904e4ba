internal import CCurl

/// The host of a URL as a proxy would interpret it, as far as it can be checked here. Without a proxy the dialled address is checked. With
/// one the text decides: curl converts `2130706433`, `0x7f.1` and full-width digits to `127.0.0.1` in the request. Therefore the host is
/// checked in the form returned by curl's own parser.
enum ProxyTarget: Equatable {
    /// An address in any spelling.
    case address(IPAddress)
    /// A name for the machine that resolves it: the proxy itself.
    case loopbackName
    /// A name that only the proxy can resolve.
    case name

    /// Loopback names in common hosts files, besides `localhost` and its subdomains (RFC 6761).
    private static let loopbackNames: Set<ByteText> = [
        "localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6",
        "localhost6.localdomain6", "ip6-localhost", "ip6-loopback", "loopback",
    ]

    /// Only on the downloader's thread, whose locale lets curl read international names.
    /// - Throws: `invalidURL` if curl rejects the host, or it ends in a number without being an address in curl's form (WHATWG URL, section
    ///   3.5): a proxy might interpret it differently from inet_aton(3).
    init(_ request: RequestURL) throws(WebImageError) {
        var host = try Self.host(of: request.text)
        if host.utf8.first == UInt8(ascii: "[") {
            guard let address = IPAddress(host.dropFirst().dropLast()) else { throw Self.noAddress(host) }
            self = .address(address)
            return
        }
        while host.utf8.last == UInt8(ascii: ".") { host = String(Substring(host.utf8.dropLast())) }
        if let address = IPAddress(host) {
            self = .address(address)
        } else if Self.endsInNumber(host) {
            throw Self.noAddress(host)
        } else {
            self = Self.loopbackNames.contains(host) || host.endsWithBytes(of: ".localhost") ? .loopbackName : .name
        }
    }

    private static func noAddress(_ host: String) -> WebImageError {
        WebImageError(.invalidURL, "the host \(host) ends in a number but is not an address")
    }

    /// The host as curl uses it, in lower case: IPv4 in its usual form, percent-decoded, international names in ASCII. Only on the
    /// downloader's thread.
    static func host(of url: String) throws(WebImageError) -> String {
        guard let parser = curl_url() else { throw WebImageError(.localFault, "curl has no memory for a URL") }
        defer { curl_url_cleanup(parser) }
        var text: UnsafeMutablePointer<CChar>?
        var status = curl_url_set(parser, CURLUPART_URL, url, 0)
        if status == CURLUE_OK { status = curl_url_get(parser, CURLUPART_HOST, &text, UInt32(CURLU_PUNYCODE)) }
        // Of a name that cannot be ASCII curl 7.88 returns what it has begun with, beside the error.
        defer { curl_free(text) }
        guard status == CURLUE_OK, let text else {
            throw WebImageError(.invalidURL, "curl: \(String(cString: curl_url_strerror(status)))")
        }
        return String(cString: text).asciiLowercased
    }

    private static func endsInNumber(_ host: String) -> Bool {
        guard let last = host.split(atByte: ".").last else { return false }
        return last.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } || last.startsWithBytes(of: "0x")
    }
}
