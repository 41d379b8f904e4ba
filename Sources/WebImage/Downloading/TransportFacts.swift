internal import CCurl

/// What libcurl says of itself, for whoever looks why something does not work.
package enum TransportFacts {
    /// `libcurl/7.88.1 OpenSSL/3.0.11 zlib/1.2.13 …`, as libcurl writes it.
    package static var versions: String { String(cString: curl_version()) }

    /// The file with the authorities that may vouch for servers; nil where libcurl was built without one.
    package static var authorities: String? {
        guard let handle = curl_easy_init() else { return nil }
        defer { curl_easy_cleanup(handle) }
        guard let text = ccurl_get_pointer(handle, CURLINFO_CAINFO) else { return nil }
        return String(cString: text.assumingMemoryBound(to: CChar.self))
    }
}
