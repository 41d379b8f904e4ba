internal import CCurl

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

    func headers(_ name: String) -> [String] {
        var values: [String] = []
        var header: UnsafeMutablePointer<curl_header>?
        while curl_easy_header(easy, name, values.count, UInt32(CURLH_HEADER), -1, &header) == CURLHE_OK, let header {
            values.append(String(cString: header.pointee.value))
        }
        return values
    }

    func header(_ name: String) -> String? {
        var header: UnsafeMutablePointer<curl_header>?
        guard curl_easy_header(easy, name, 0, UInt32(CURLH_HEADER), -1, &header) == CURLHE_OK, let header else {
            return nil
        }
        return String(cString: header.pointee.value)
    }
}
