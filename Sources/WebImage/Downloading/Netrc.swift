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
            if let host, !credentials.contains(where: { $0.names(host) }) {
                credentials.append(Credential(user: user, password: password, scheme: scheme, hosts: [host]))
            }
            (host, user, password) = (nil, "", "")
        }
        var words = words(in: text)[...]
        while let word = words.popFirst() {
            switch word {
            case "machine":
                end()
                host = words.popFirst()?.asciiLowercased
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
        for line in text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false) {
            // A line break of two bytes is one character.
            let trimmed = line.drop { $0 == " " || $0 == "\t" || $0 == "\r" }
            // A macro ends with an empty line.
            if isInMacro, !trimmed.isEmpty { continue }
            isInMacro = trimmed.starts(with: "macdef".unicodeScalars)
            if isInMacro || trimmed.first == "#" { continue }
            var word: String?
            var isQuoted = false
            var isEscaped = false
            for character in trimmed {
                if isEscaped {
                    word?.unicodeScalars.append(character)
                    isEscaped = false
                } else if isQuoted && character == "\\" {
                    isEscaped = true
                } else if character == "\"" && (isQuoted || word == nil) {
                    if isQuoted { words.append(word ?? "") }
                    word = isQuoted ? nil : ""
                    isQuoted.toggle()
                } else if !isQuoted && character.properties.isWhitespace {
                    if let word { words.append(word) }
                    word = nil
                } else {
                    word = word ?? ""
                    word?.unicodeScalars.append(character)
                }
            }
            if let word { words.append(word) }
        }
        return words
    }
}
