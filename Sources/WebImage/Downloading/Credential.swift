/// A name and password, or a token, for the hosts it is for (SDWebImageDownloader's `urlCredential`, `username` and `password`).
///
/// It is sent once: who is told 401 in spite of it has failed. It stays behind where a redirect leaves its hosts or, where it names none,
/// the site of the URL.
public struct Credential: Sendable, Equatable {
    /// How it is told to the server.
    public enum Scheme: String, Sendable, CaseIterable {
        /// Name and password in every request (RFC 7617).
        case basic
        /// A proof that the password is known, once the server has asked for it (RFC 7616).
        case digest
        /// A token in every request (RFC 6750).
        case bearer
    }

    /// How it is told.
    public var scheme: Scheme
    /// Whose it is; empty for a token.
    public var user: String
    /// The password or the token.
    public var secret: String
    /// The hosts it is for, in lower case; empty: whichever host a URL names.
    public var hosts: Set<String>

    /// A name and its password.
    public init(user: String, password: String, scheme: Scheme = .basic, hosts: Set<String> = []) {
        self.scheme = scheme
        self.user = user
        secret = password
        self.hosts = hosts
    }

    /// A token.
    public init(bearer token: String, hosts: Set<String> = []) {
        scheme = .bearer
        user = ""
        secret = token
        self.hosts = hosts
    }

    /// Whether it can be sent without becoming another header line.
    var isValid: Bool {
        !secret.isEmpty || scheme != .bearer
            ? [user, secret].allSatisfy { $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } } : false
    }
}
