/// The host of a request as curl looks it up.
struct LookupHost: Equatable {
    /// In lower case and ASCII, as curl's cache has it; nil for an address in any spelling, and for a host that curl refuses.
    let name: String?

    /// Only on the downloader's thread.
    init(_ request: RequestURL) {
        let host = request.host
        if Self.isPlainName(host) {
            name = host
        } else if let text = try? ProxyTarget.host(of: request.text), text.first != "[", IPAddress(text) == nil {
            name = text
        } else {
            name = nil
        }
    }

    /// Whether it is in ASCII and its last label begins with a letter: no spelling of an address does.
    private static func isPlainName(_ host: String) -> Bool {
        var isAtStart = true
        var isName = false
        for byte in host.utf8 {
            if byte >= 0x80 { return false }
            if byte == UInt8(ascii: ".") {
                isAtStart = true
            } else if isAtStart {
                isAtStart = false
                isName = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
            }
        }
        return isName
    }
}
