/// The key of a transformed image in the cache (SDTransformedKeyForKey).
public enum TransformedKey {
    static let separator = "-"

    /// Inserts the key of a transformer before the path extension: `https://h/a.png` and `flip` give `https://h/a-flip.png`. Without an
    /// extension it is appended; a name's leading or trailing dot is not one.
    /// - Parameters:
    ///   - key: a URL, or another key.
    ///   - transformerKey: ``ImageTransformer/transformerKey``; if it is empty, the key stays what it is.
    /// - Returns: the key of the transformed image.
    public static func key(_ key: String, transformerKey: String) -> String {
        guard !transformerKey.isEmpty else { return key }
        guard let dot = dot(key) else { return key + separator + transformerKey }
        return key[..<dot] + separator + transformerKey + key[dot...]
    }

    /// Where the extension of the last component of the path begins.
    private static func dot(_ key: String) -> String.Index? {
        let bytes = key.utf8
        var start = bytes.startIndex
        if let scheme = bytes.firstRange(of: "://".utf8) {
            // The dots of a host are none of the path's.
            start = bytes[scheme.upperBound...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
        }
        let end = bytes[start...].firstIndex { "?#".utf8.contains($0) } ?? bytes.endIndex
        let path = bytes[start..<end]
        let name = path.lastIndex(of: UInt8(ascii: "/")).map { path[path.index(after: $0)...] } ?? path
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex,
            name.index(after: dot) < name.endIndex
        else {
            return nil
        }
        return dot
    }
}
