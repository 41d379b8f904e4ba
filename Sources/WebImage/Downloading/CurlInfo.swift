internal import CCurl
internal import Glibc

struct CurlInfo {
    private let easy: UnsafeMutableRawPointer

    init(_ easy: UnsafeMutableRawPointer) { self.easy = easy }

    var status: Int { ccurl_get_long(easy, CURLINFO_RESPONSE_CODE) }

    /// Announced length of the body.
    var contentLength: Int? {
        let length = ccurl_get_off(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        return length >= 0 ? Int(length) : nil
    }

    /// Bytes of the body on the wire.
    var wireBytes: Int { Int(ccurl_get_off(easy, CURLINFO_SIZE_DOWNLOAD_T)) }

    var firstByte: Double { seconds(CURLINFO_STARTTRANSFER_TIME_T) }

    var timing: DownloadedImage.Timing {
        var timing = DownloadedImage.Timing()
        timing.nameLookup = seconds(CURLINFO_NAMELOOKUP_TIME_T)
        timing.connect = seconds(CURLINFO_CONNECT_TIME_T)
        timing.tls = seconds(CURLINFO_APPCONNECT_TIME_T)
        timing.firstByte = firstByte
        timing.total = seconds(CURLINFO_TOTAL_TIME_T)
        timing.reusedConnection = ccurl_get_long(easy, CURLINFO_NUM_CONNECTS) == 0
        return timing
    }

    /// Whether a connection was made, to the proxy if there is one.
    var isConnected: Bool { seconds(CURLINFO_CONNECT_TIME_T) > 0 }

    /// Those of the proxy itself: another version, a kind of authentication or a password that it does not take. The others are of the host
    /// behind it, or may be.
    static let ownProxyErrors: Set<Int> = Set(
        [
            CURLPX_BAD_VERSION, CURLPX_GSSAPI, CURLPX_GSSAPI_PERMSG, CURLPX_GSSAPI_PROTECTION, CURLPX_IDENTD,
            CURLPX_IDENTD_DIFFER, CURLPX_LONG_PASSWD, CURLPX_LONG_USER, CURLPX_NO_AUTH, CURLPX_UNKNOWN_MODE,
            CURLPX_USER_REJECTED,
        ].map { Int($0.rawValue) })

    /// curl's reason for an error of a SOCKS proxy (CURLPX).
    var proxyError: Int { ccurl_get_long(easy, CURLINFO_PROXY_ERROR) }

    private func seconds(_ info: CURLINFO) -> Double { Double(ccurl_get_off(easy, info)) / 1e6 }

    var remoteAddress: String {
        ccurl_get_pointer(easy, CURLINFO_PRIMARY_IP).map {
            String(cString: $0.assumingMemoryBound(to: CChar.self))
        } ?? ""
    }

    /// `1.0`, `1.1`, `2` or `3`.
    var httpVersion: String {
        switch ccurl_get_long(easy, CURLINFO_HTTP_VERSION) {
        case Int(CURL_HTTP_VERSION_1_0): "1.0"
        case Int(CURL_HTTP_VERSION_2_0): "2"
        case Int(CURL_HTTP_VERSION_3): "3"
        default: "1.1"
        }
    }

    var isRedirect: Bool {
        switch status {
        case 301, 302, 303, 307, 308: header("Location")?.isEmpty == false
        default: false
        }
    }

    /// `Location` as text. What is not UTF-8, such as a name in Latin-1, is percent-encoded byte by byte, as browsers and curl send it on; the rest
    /// is encoded with the URL.
    var location: String? {
        field("Location", 0).map { Self.text(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }

    /// Valid UTF-8 as it is, and each other byte percent-encoded.
    static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var out: [UInt8] = []
        var rest = bytes[...]
        while let first = rest.first {
            // Of a character of more than one byte: a shorter prefix of it is not valid.
            let character = (1...4).lazy.map { rest.prefix($0) }.first { String(validating: $0, as: UTF8.self) != nil }
            out += character.map(Array.init) ?? Array("%\(String(first, radix: 16, uppercase: true))".utf8)
            rest = rest.dropFirst(character?.count ?? 1)
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Seconds of `Retry-After`, from a number or a date (RFC 9110, section 10.2.3).
    var retryAfter: Double? {
        let seconds = ccurl_get_off(easy, CURLINFO_RETRY_AFTER)
        return seconds > 0 ? Double(seconds) : nil
    }

    var responseHeaders: [HTTPHeader] {
        var headers: [HTTPHeader] = []
        var last: UnsafeMutablePointer<curl_header>?
        while let next = curl_easy_nextheader(easy, UInt32(CURLH_HEADER), -1, last) {
            headers.append(HTTPHeader(String(cString: next.pointee.name), String(cString: next.pointee.value)))
            last = next
        }
        return headers
    }

    /// The values of all fields of a name that is not known before.
    func values(of name: String) -> [String] { responseHeaders.filter { $0.isNamed(name) }.map(\.value) }

    /// The values of all fields of a name.
    func headers(_ name: StaticString) -> [String] {
        var values: [String] = []
        while let value = field(name, values.count) { values.append(String(cString: value)) }
        return values
    }

    func header(_ name: StaticString) -> String? { field(name, 0).map { String(cString: $0) } }

    /// A short `String` would be copied for C at each comparison.
    private func field(_ name: StaticString, _ index: Int) -> UnsafePointer<CChar>? {
        var header: UnsafeMutablePointer<curl_header>?
        let name = UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
        guard curl_easy_header(easy, name, index, UInt32(CURLH_HEADER), -1, &header) == CURLHE_OK, let header else {
            return nil
        }
        return UnsafePointer(header.pointee.value)
    }
}
