/// SDWebImage's name for the file of a key: MD5 in lower-case hexadecimal, and an extension. Used only to exchange images with SDWebImage.
///
/// Always a single file name without slashes.
public enum SDWebImageFileName {
    /// Versions of the naming rule.
    public enum Layout: String, Sendable, CaseIterable {
        /// SDWebImage 3: the extension of the whole key, so that `a.jpg?b=1` has `jpg?b=1`. If too long, SDWebImage had no file either.
        case v3
        /// SDWebImage 4: the extension of the URL's path, percent-decoded; omitted if longer than 222.
        case v4
        /// SDWebImage 5: like 4, without colons.
        case v5

        /// Folder of the shared cache's files, below the app's `Library/Caches`.
        public var folder: String {
            switch self {
            case .v3, .v4: "default/com.hackemist.SDWebImageCache.default"
            case .v5: "com.hackemist.SDImageCache/default"
            }
        }
    }

    /// NAME_MAX minus 32 digits and the dot.
    private static let longestExtension = 222

    /// The file name of a key; nil if libcrypto lacks MD5 (a FIPS build).
    public static func name(forKey key: String, layout: Layout = .v5) -> String? {
        // SDWebImage hashes a C string.
        guard let digest = SHA256.md5Hex(Array(key.utf8.prefix { $0 != 0 })) else { return nil }
        let suffix = fileExtension(forKey: key, layout: layout)
        return suffix.isEmpty ? digest : "\(digest).\(suffix)"
    }

    private static func fileExtension(forKey key: String, layout: Layout) -> String {
        let path = layout == .v3 ? key : percentDecoded(path(ofURL: key))
        // A NUL would terminate the name.
        let suffix = pathExtension(of: path.utf8[...]).filter { $0 != "\0" }
        switch layout {
        case .v3: return suffix
        case .v4, .v5:
            // Foundation rejects extensions with a space.
            guard !suffix.contains(" ") else { return "" }
            let suffix = layout == .v5 ? suffix.filter { $0 != ":" } : suffix
            // NSString counts UTF-16 units.
            return suffix.utf16.count > longestExtension ? "" : suffix
        }
    }

    /// The part after the authority and before query and fragment (RFC 3986 section 3), even if the text is not a URL.
    private static func path(ofURL key: String) -> Substring {
        let slash = UInt8(ascii: "/")
        var rest = key.utf8.prefix { !"?#".utf8.contains($0) }
        let colon = rest.firstIndex { ":/".utf8.contains($0) }
        if let colon, rest[colon] != slash { rest = rest[colon...].dropFirst() }
        return Substring(rest.starts(with: "//".utf8) ? rest.dropFirst(2).drop { $0 != slash } : rest)
    }

    /// The part after the last dot of the last component, unless that dot is its first or last character (NSString's `pathExtension`).
    private static func pathExtension(of path: Substring.UTF8View) -> String {
        let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
        var path = path
        while path.last == slash { path.removeLast() }
        let start = path.lastIndex(of: slash).map { path.index(after: $0) } ?? path.startIndex
        guard let last = path[start...].lastIndex(of: dot), last != start else { return "" }
        return String(decoding: path[last...].dropFirst(), as: UTF8.self)
    }

    /// Unchanged if an escape is invalid.
    private static func percentDecoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return String(text)
            }
            bytes.append(high << 4 | low)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(UnicodeScalar(byte)).hexDigitValue.map { UInt8($0) }
    }
}
