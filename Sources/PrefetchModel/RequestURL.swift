internal import Glibc

/// The normalised form of a URL that is sent: bytes that RFC 3986 does not allow are percent-encoded. The line itself identifies the image.
/// A class: it is passed through many layers, and each copy of a struct of strings would count six references.
package final class RequestURL: Sendable {
    package let scheme: String
    /// As written, in lower case, including IPv6 brackets; curl normalises unusual spellings and international names.
    package let host: String
    package let port: Int
    /// Percent-decoded.
    package let user: String?
    package let password: String?
    /// Path and query, at least `/`.
    package let target: String
    /// Scheme, host and port: the boundary for credentials.
    package let origin: String
    /// The URL without credentials and fragment, as passed to curl.
    package let text: String

    static let maxLength = 65_535

    /// - Throws: `invalidURL`, or `refused` if the scheme is neither http nor https.
    package convenience init(_ text: String) throws(WebImageError) {
        let parts = try text.utf8Span.span.withUnsafeBufferPointer { bytes throws(WebImageError) in
            try Parts(bytes[...])
        }
        self.init(parts, text: parts.isNormal ? text : nil)
    }

    private struct Parts {
        let scheme: String
        let host: String
        let port: Int
        var user: String?
        var password: String?
        let target: String
        /// Whether the bytes it was read from are what is sent.
        private(set) var isNormal = false

        init(scheme: String, host: String, port: Int, target: String) {
            self.scheme = scheme
            self.host = host
            self.port = port
            self.target = target
        }

        init(_ text: Bytes) throws(WebImageError) {
            var bytes = text
            guard bytes.count <= maxLength else {
                throw WebImageError(.invalidURL, "longer than \(maxLength) bytes")
            }
            if let control = bytes.first(where: { $0 < 0x20 || $0 == 0x7f }) {
                throw WebImageError(.invalidURL, "contains the control character 0x\(String(control, radix: 16))")
            }
            guard let scheme = RequestURL.scheme(of: bytes) else { throw WebImageError(.invalidURL, "no scheme") }
            var isAsWritten = true
            if RequestURL.equal(scheme, "http") {
                self.scheme = "http"
            } else if RequestURL.equal(scheme, "https") {
                self.scheme = "https"
            } else {
                self.scheme = RequestURL.lowercased(scheme)
                isAsWritten = false
            }
            guard isAsWritten || self.scheme.hasBytes(of: "http") || self.scheme.hasBytes(of: "https") else {
                throw WebImageError(.refused, "scheme \(self.scheme) is not supported", reason: .scheme)
            }
            bytes = bytes[scheme.endIndex...].dropFirst()
            guard RequestURL.equal(bytes.prefix(2), "//") else { throw WebImageError(.invalidURL, "no host") }
            bytes = bytes.dropFirst(2)
            let authority = bytes.prefix { !endsAuthority($0) }
            (user, password) = try credentials(of: authority)
            let place = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[$0...].dropFirst() } ?? authority
            let portText: Bytes
            if place.first == UInt8(ascii: "[") {
                guard let end = place.firstIndex(of: UInt8(ascii: "]")) else {
                    throw WebImageError(.invalidURL, "a bracket is missing in the host")
                }
                host = RequestURL.lowercased(place[...end])
                portText = place[end...].dropFirst()
                guard IPAddress(host.dropFirst().dropLast())?.isIPv6 == true else {
                    throw WebImageError(.invalidURL, "no IPv6 address in the brackets")
                }
            } else {
                let name = place.prefix { $0 != UInt8(ascii: ":") }
                host = RequestURL.lowercased(name)
                portText = place[name.endIndex...]
                guard !host.isEmpty else { throw WebImageError(.invalidURL, "no host") }
                guard host.utf8.allSatisfy(isHostByte) else {
                    throw WebImageError(.invalidURL, "the host contains a character that no name has")
                }
            }
            port = try RequestURL.port(portText, scheme: self.scheme)
            let rest = bytes[authority.endIndex...]
            let path = rest.prefix { $0 != UInt8(ascii: "#") }
            target = encode(path)
            isNormal =
                isAsWritten && user == nil && password == nil && path.endIndex == text.endIndex
                && target.utf8.count == path.count && RequestURL.equal(place.prefix(host.utf8.count), host)
                && RequestURL.equal(portText, RequestURL.suffix(port, scheme: self.scheme))
        }
    }

    /// * `text`: nil: it is put together from the parts.
    private init(_ parts: Parts, text: String? = nil) {
        scheme = parts.scheme
        host = parts.host
        port = parts.port
        user = parts.user
        password = parts.password
        target = parts.target
        let port = Self.suffix(parts.port, scheme: parts.scheme)
        let count = parts.scheme.utf8.count + 3 + parts.host.utf8.count + port.utf8.count
        // One buffer: each append to a string costs as much as all of this.
        self.text =
            text
            ?? String(unsafeUninitializedCapacity: count + parts.target.utf8.count) { buffer in
                var used = 0
                func put(_ text: String) {
                    used = buffer[used...].update(fromContentsOf: text.utf8)
                }
                put(parts.scheme)
                put("://")
                put(parts.host)
                put(port)
                put(parts.target)
                return used
            }
        origin = String(Substring(self.text.utf8.prefix(count)))
    }

    /// The address, if the host is an IP address in its usual spelling.
    package var literalAddress: IPAddress? {
        host.utf8.first == UInt8(ascii: "[") ? IPAddress(host.dropFirst().dropLast()) : IPAddress(host)
    }

    /// Host and path.
    package var place: String { host + (target.split(atByte: "?").first ?? "") }

    /// Resolves a `Location` (RFC 3986, section 5.2). Credentials in it are dropped.
    /// - Throws: `invalidURL`; `refused` if it leads to another scheme or from https to http.
    package func redirected(to location: String) throws(WebImageError) -> RequestURL {
        let reference = location.utf8
        let hasScheme = reference.span.withUnsafeBufferPointer { Self.scheme(of: $0[...]) != nil }
        var absolute: String
        if hasScheme {
            absolute = location
        } else if reference.starts(with: "//".utf8) {
            absolute = "\(scheme):\(location)"
        } else if reference.first == UInt8(ascii: "/") {
            absolute = "\(origin)\(location)"
        } else {
            let path = target.utf8.prefix { $0 != UInt8(ascii: "?") }
            switch reference.first {
            case UInt8(ascii: "?"): absolute = "\(origin)\(Substring(path))\(location)"
            case nil, UInt8(ascii: "#"): absolute = text
            default:
                let last = path.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
                absolute = "\(origin)\(Substring(path[...last]))\(location)"
            }
        }
        var target: RequestURL
        do throws(WebImageError) {
            target = try RequestURL(absolute)
        } catch {
            var error = error
            error.message = "redirected to a bad URL: \(error.message)"
            throw error
        }
        if scheme == "https" && target.scheme == "http" {
            throw WebImageError(.refused, "redirected from https to http", reason: .downgrade)
        }
        if target.user != nil || target.password != nil { target = target.withoutCredentials }
        return target
    }

    private var withoutCredentials: RequestURL {
        RequestURL(Parts(scheme: scheme, host: host, port: port, target: target))
    }
}

extension RequestURL {
    /// Part of a URL's bytes in memory, without copies: each byte is examined several times.
    private typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

    private static func text(_ bytes: Bytes) -> String { String(decoding: bytes, as: UTF8.self) }

    /// As `elementsEqual`, which takes a step of an iterator for each byte.
    private static func equal(_ bytes: Bytes, _ text: String) -> Bool {
        guard bytes.count == text.utf8.count, let start = UnsafeBufferPointer(rebasing: bytes).baseAddress else {
            return bytes.isEmpty && text.isEmpty
        }
        return text.utf8Span.span.withUnsafeBufferPointer { text in
            memcmp(start, text.baseAddress!, text.count) == 0
        }
    }

    private static func lowercased(_ bytes: Bytes) -> String {
        let isLower = bytes.allSatisfy { $0 < 0x41 || $0 > 0x5a }
        return isLower ? text(bytes) : text(bytes).asciiLowercased
    }

    /// The port as the end of an origin: empty if it is the scheme's own.
    private static func suffix(_ port: Int, scheme: String) -> String {
        port == (scheme == "https" ? 443 : 80) ? "" : ":" + String(port)
    }

    private static func scheme(of bytes: Bytes) -> Bytes? {
        let scheme = bytes.prefix { $0 != UInt8(ascii: ":") }
        guard let first = scheme.first, isLetter(first), scheme.endIndex < bytes.endIndex,
            scheme.allSatisfy({ isLetter($0) || isDigit($0) || $0 == 0x2b || $0 == 0x2d || $0 == 0x2e })
        else { return nil }
        return scheme
    }

    private static func credentials(
        of authority: Bytes
    ) throws(WebImageError) -> (user: String?, password: String?) {
        guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return (nil, nil) }
        let info = authority[..<at]
        let name = info.prefix { $0 != UInt8(ascii: ":") }
        guard let user = decode(name), let password = decode(info[name.endIndex...].dropFirst()) else {
            throw WebImageError(.invalidURL, "the credentials are not percent-encoded as they should be")
        }
        return (user, name.endIndex < info.endIndex ? password : nil)
    }

    private static func port(_ text: Bytes, scheme: String) throws(WebImageError) -> Int {
        let standard = scheme == "https" ? 443 : 80
        guard let first = text.first else { return standard }
        let digits = text.dropFirst()
        if first == UInt8(ascii: ":") && digits.isEmpty { return standard }
        let port = digits.prefix(6).reduce(0) { $0 * 10 + Int($1 & 15) }
        guard first == UInt8(ascii: ":"), digits.count <= 5, digits.allSatisfy(isDigit), (1...65_535).contains(port)
        else { throw WebImageError(.invalidURL, "the port is not a number from 1 to 65535") }
        return port
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a }
    private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }
    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == 0x2f || byte == 0x3f || byte == 0x23 || byte == 0x5c
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        isLetter(byte) || isDigit(byte) || byte == 0x2e || byte == 0x2d || byte == 0x5f || byte >= 0x80
    }

    /// Allowed by RFC 3986 in a path or query, including the `%` of an escape.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x22, 0x3c, 0x3e, 0x5b, 0x5c, 0x5d, 0x5e, 0x60, 0x7b, 0x7c, 0x7d: false
        default: byte > 0x20 && byte < 0x7f
        }
    }

    /// Path and query as sent, with a leading `/`.
    private static func encode(_ bytes: Bytes) -> String {
        let slash = UInt8(ascii: "/")
        if bytes.first == slash && bytes.allSatisfy(isAllowed) { return text(bytes) }
        var encoded: [UInt8] = bytes.first == slash ? [] : [slash]
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in bytes {
            if isAllowed(byte) {
                encoded.append(byte)
            } else {
                encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// Nil for a broken escape or a NUL.
    private static func decode(_ bytes: Bytes) -> String? {
        var decoded: [UInt8] = []
        var rest = bytes.makeIterator()
        while var byte = rest.next() {
            if byte == UInt8(ascii: "%") {
                guard let high = rest.next().flatMap({ Character(UnicodeScalar($0)).hexDigitValue }),
                    let low = rest.next().flatMap({ Character(UnicodeScalar($0)).hexDigitValue })
                else { return nil }
                byte = UInt8(high << 4 | low)
            }
            guard byte != 0 else { return nil }
            decoded.append(byte)
        }
        return String(decoding: decoded, as: UTF8.self)
    }
}
