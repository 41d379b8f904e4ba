/// User name and password, or a token, for certain hosts (SDWebImageDownloader's `urlCredential`, `username` and `password`).
///
/// Sent once: a 401 in reply is a failure. Not sent after a redirect away from its hosts or, if it names none, from the site of the URL.
public struct Credential: Sendable, Equatable {
    /// The authentication scheme.
    public enum Scheme: String, Sendable, CaseIterable {
        /// Name and password in every request (RFC 7617).
        case basic
        /// Challenge and response (RFC 7616).
        case digest
        /// Token in every request (RFC 6750).
        case bearer
    }

    /// The authentication scheme.
    public var scheme: Scheme
    /// User name; empty for a token.
    public var user: String
    /// Password or token.
    public var secret: String
    /// The hosts it is for, in lower case, each with or without a port; empty: the site of each URL. After a redirect one without a port is
    /// for the usual port of the scheme alone.
    public var hosts: Set<String>

    /// Creates a credential with user name and password.
    public init(user: String, password: String, scheme: Scheme = .basic, hosts: Set<String> = []) {
        self.scheme = scheme
        self.user = user
        secret = password
        self.hosts = hosts
    }

    /// Creates a credential with a token.
    public init(bearer token: String, hosts: Set<String> = []) {
        scheme = .bearer
        user = ""
        secret = token
        self.hosts = hosts
    }

    /// Whether it names the host.
    func names(_ host: String) -> Bool { hosts.contains { $0.hasBytes(of: host) } }

    /// Whether it may go with a request.
    /// * `isAtOrigin`: at scheme, host and port of the URL, which the user has named.
    func isFor(_ request: RequestURL, isAtOrigin: Bool) -> Bool {
        if hosts.isEmpty { return isAtOrigin }
        if names("\(request.host):\(request.port)") { return true }
        let isUsual = request.port == (request.scheme == "https" ? 443 : 80)
        return (isAtOrigin || isUsual) && names(request.host)
    }

    /// Whether it can be sent without injecting another header line.
    var isValid: Bool {
        !secret.isEmpty || scheme != .bearer
            ? [user, secret].allSatisfy { $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } } : false
    }
}
