internal import CCurl

package enum TransportFacts {
    /// `libcurl/7.88.1 OpenSSL/3.0.11 zlib/1.2.13 …`, as reported by libcurl.
    package static var versions: String { String(cString: curl_version()) }

    /// libcurl's default CA file; nil if it was built without one.
    package static var authorities: String? {
        guard let handle = curl_easy_init() else { return nil }
        defer { curl_easy_cleanup(handle) }
        guard let text = ccurl_get_pointer(handle, CURLINFO_CAINFO) else { return nil }
        return String(cString: text.assumingMemoryBound(to: CChar.self))
    }
}
