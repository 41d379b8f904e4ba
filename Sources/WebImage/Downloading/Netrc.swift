/// Parses netrc files like ftp(1) and curl: `machine HOST login NAME password PASSWORD`.
///
/// `default`, which would send a password to every host, and `macdef` are ignored.
public enum Netrc {
    /// The credentials in a file's text, one per host; the first entry of a host wins.
    public static func credentials(in text: String, scheme: Credential.Scheme = .basic) -> [Credential] {
        var credentials: [Credential] = []
        var host: String?
        var (user, password) = ("", "")
        func end() {
            if let host, !credentials.contains(where: { $0.hosts.contains(host) }) {
                credentials.append(Credential(user: user, password: password, scheme: scheme, hosts: [host]))
            }
            (host, user, password) = (nil, "", "")
        }
        var words = words(in: text)[...]
        while let word = words.popFirst() {
            switch word {
            case "machine":
                end()
                host = words.popFirst()?.lowercased()
            case "default": end()
            case "login": user = words.popFirst() ?? ""
            case "password": password = words.popFirst() ?? ""
            case "account": words = words.dropFirst()
            default: break
            }
        }
        end()
        return credentials
    }

    /// Words separated by blanks, or in double quotes with `\\` as escape; without comments and macros.
    private static func words(in text: String) -> [String] {
        var words: [String] = []
        var isInMacro = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let trimmed = line.drop { $0 == " " || $0 == "\t" }
            // A macro ends with an empty line.
            if isInMacro, !trimmed.isEmpty { continue }
            isInMacro = trimmed.hasPrefix("macdef")
            if isInMacro || trimmed.hasPrefix("#") { continue }
            var word: String?
            var isQuoted = false
            var isEscaped = false
            for character in trimmed {
                if isEscaped {
                    word?.append(character)
                    isEscaped = false
                } else if isQuoted && character == "\\" {
                    isEscaped = true
                } else if character == "\"" && (isQuoted || word == nil) {
                    if isQuoted { words.append(word ?? "") }
                    word = isQuoted ? nil : ""
                    isQuoted.toggle()
                } else if !isQuoted && (character.isWhitespace) {
                    if let word { words.append(word) }
                    word = nil
                } else {
                    word = (word ?? "") + String(character)
                }
            }
            if let word { words.append(word) }
        }
        return words
    }
}
