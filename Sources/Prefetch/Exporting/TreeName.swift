internal import WebImage

/// The path of an image in a folder laid out as its URL: `https/example.org/a/b.jpg`.
///
/// URLs are untrusted: a character other than letters, digits and `-._=+@,%` is written as `~NN`, no name begins with a dot, and a name
/// that is too long ends in a digest. A `~` before anything but two digits was added here, so two URLs never share a path.
enum TreeName {
    /// NAME_MAX is 255; an extension and a `~` may be added.
    private static let longestName = 200
    /// PATH_MAX is 4,096, with the folder.
    private static let longestPath = 2_000

    /// The path for a URL, without a leading slash. Credentials appear only as the start of their digest.
    static func path(of url: String, _ format: ImageFormat) -> String {
        let (scheme, rest) = split(url, at: "://")
        let hostEnd = rest.utf8.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        var folders = [name(scheme), host(rest[..<hostEnd])]
        let path = URLRedaction.url(String(rest[hostEnd...])) { URLRedaction.mask + digest($0).prefix(16) }
        let queryStart = path.utf8.firstIndex { "?#".utf8.contains($0) } ?? path.endIndex
        var parts = path[..<queryStart].split(atByte: "/", omittingEmptySubsequences: false)
        // The empty part before the first slash.
        if !parts.isEmpty { parts.removeFirst() }
        let last = (parts.popLast() ?? "") + path[queryStart...]
        // Keeps names of folders and files apart.
        for part in parts { folders.append(hasEnding(part) ? name(part) + "~" : name(part)) }
        let ending = format.fileExtension
        // "http://h" and "http://h/" differ.
        let file = (path.utf8.first == UInt8(ascii: "/") ? "" : "~~") + (last.isEmpty ? "~" : name(last))
        let isNamed = hasSuffix(file, ".\(ending)") || (ending == "jpg" && hasSuffix(file, ".jpeg"))
        let text = (folders + [isNamed ? file : "\(file)~.\(ending)"]).joined(separator: "/")
        guard text.utf8.count > longestPath else { return text }
        return "\(folders[0])/\(folders[1])/~~\(digest(url)).\(ending)"
    }

    /// Hides the password from readers of the folder.
    private static func host(_ authority: Substring) -> String {
        guard let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) else { return name(authority) }
        let place = Substring(authority.utf8[at...].dropFirst())
        return "~~\(digest(authority[..<at]).prefix(8))~~\(name(place))"
    }

    private static func name(_ text: some StringProtocol) -> String {
        if text.isEmpty { return "~" }
        var escaped = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                escaped.unicodeScalars.append(UnicodeScalar(byte))
            case _ where "-._=+@,%".utf8.contains(byte): escaped.unicodeScalars.append(UnicodeScalar(byte))
            default: escaped += "~" + Digest.hex([byte])
            }
        }
        if escaped.first == "." { escaped = "~2e" + escaped.dropFirst() }
        guard escaped.utf8.count > longestName else { return escaped }
        return "\(escaped.prefix(longestName - 80))~~\(digest(text))"
    }

    private static func digest(_ text: some StringProtocol) -> String { SHA256.hash(Array(text.utf8)).hex }

    /// Whether it ends like the name of an image file.
    private static func hasEnding(_ name: Substring) -> Bool {
        ImageFormat.allCases.contains { hasSuffix(name, ".\($0.fileExtension)") } || hasSuffix(name, ".jpeg")
    }

    private static func hasSuffix(_ text: some StringProtocol, _ suffix: String) -> Bool {
        guard text.utf8.count > suffix.utf8.count else { return false }
        return Substring(String(text).utf8.suffix(suffix.utf8.count)).isASCIICaseInsensitivelyEqual(to: suffix)
    }

    private static func split(_ text: String, at separator: String) -> (Substring, Substring) {
        guard let range = text.utf8.firstRange(of: separator.utf8) else { return ("", text[...]) }
        return (text[..<range.lowerBound], text[range.upperBound...])
    }
}
