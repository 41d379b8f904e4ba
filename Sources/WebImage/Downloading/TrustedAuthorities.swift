internal import Glibc

/// The file of certificate authorities that this machine trusts. libcurl knows only the place that it was built for, and distributions differ.
package enum TrustedAuthorities {
    /// Name a file, as for the tool curl and for OpenSSL; the first that is set counts, whether or not its file is there.
    package static let variables = ["CURL_CA_BUNDLE", "SSL_CERT_FILE"]

    private static let places = [
        // Debian, Ubuntu, Arch, Alpine.
        "/etc/ssl/certs/ca-certificates.crt",
        // Fedora, RHEL, Amazon Linux; the second also where compatibility links are gone.
        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        // SUSE, then what OpenSSL looks for by default.
        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    /// Of this process.
    package static let file = file(variables)

    /// Looks for the file.
    ///
    /// - Parameters:
    ///   - variables: names of the environment that count.
    ///   - environment: their values.
    ///   - builtIn: the file the library was built with.
    ///   - places: where distributions have theirs, in the order in which they are looked for.
    ///   - folder: the program's. certifi of its Python is the last that is looked for.
    /// - Returns: what is to be trusted in place of `builtIn`; nil if that is there, or nothing is.
    package static func file(
        _ variables: [String], environment: (String) -> String? = { getenv($0).map { String(cString: $0) } },
        builtIn: String? = TransportFacts.authorities, places: [String] = TrustedAuthorities.places,
        folder: String = ProgramFolder.path
    ) -> String? {
        if let named = variables.lazy.compactMap(environment).first(where: { !$0.isEmpty }) { return named }
        func isThere(_ file: String) -> Bool { access(file, R_OK) == 0 }
        if let builtIn, isThere(builtIn) { return nil }
        return places.first(where: isThere)
            ?? matches("\(folder)../lib/python3*/site-packages/certifi/cacert.pem").first
    }

    private static func matches(_ pattern: String) -> [String] {
        var found = glob_t()
        defer { globfree(&found) }
        guard glob(pattern, 0, nil, &found) == 0 else { return [] }
        return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
    }
}
