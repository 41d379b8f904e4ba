/// The name of an image in the cache: the SHA-256 of its key's bytes.
///
/// Paths contain nothing of a URL, a header or an extension, so no key can leave the cache directory or hit another's file.
public struct CacheKey: Sendable, Hashable, CustomStringConvertible {
    /// Number of lock files over which transfers are spread: the kernel searches a file's locks linearly.
    static let lockFileCount = 16

    /// SHA-256 of the key.
    public let digest: Digest

    /// Hashes a key byte for byte: the absolute URL, or the result of a `cacheKeyFilter`.
    public init(_ key: String) {
        var key = key
        digest = key.withUTF8 { SHA256.hash(UnsafeRawBufferPointer($0)) }
    }

    init(_ digest: Digest) { self.digest = digest }

    /// Path below the cache directory: `v1/a/b/` and 62 hexadecimal digits.
    public var path: String { text(leaf: true, name: true) }

    /// Same as ``path``.
    public var description: String { path }

    var leaf: String { text(leaf: true, name: false) }

    var name: String { text(leaf: false, name: true) }

    static let leafCount = 256

    static let nameLength = 62

    static func leaf(_ index: Int) -> String {
        "v1/\(String(index >> 4, radix: 16))/\(String(index & 15, radix: 16))"
    }

    var leafIndex: Int { Int(digest[0]) }

    /// The first 64 bits of the digest.
    var prefix: UInt64 {
        var bits: UInt64 = 0
        for index in 0..<8 { bits = bits << 8 | UInt64(digest[index]) }
        return bits
    }

    var lockFile: Int { Int(digest[31]) % Self.lockFileCount }

    /// Offset of the locked byte, 61 bits: with two more for other bytes the end of the range must fit into off_t (fcntl(2)).
    var lockOffset: Int64 {
        var offset: UInt64 = 0
        for index in 16..<24 { offset = offset << 8 | UInt64(digest[index]) }
        return Int64(offset >> 3)
    }

    /// 256 leaves, like git: with 65,536 a list of ten thousand images creates a directory for nearly each, and mkdir with its block costs
    /// as much as the image's file. File systems index large directories.
    private func text(leaf: Bool, name: Bool) -> String {
        String(unsafeUninitializedCapacity: Self.longest) { write(leaf: leaf, name: name, to: $0) }
    }

    /// Calls `body` with ``name``, or with ``path``, as a C string on the stack, which saves two allocated strings per image.
    func withCString<Result>(isPath: Bool, _ body: (UnsafePointer<CChar>) -> Result) -> Result {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.longest + 1) { text in
            text[write(leaf: isPath, name: true, to: text)] = 0
            return text.withMemoryRebound(to: CChar.self) { body($0.baseAddress!) }
        }
    }

    private static let longest = 69

    private func write(leaf: Bool, name: Bool, to text: UnsafeMutableBufferPointer<UInt8>) -> Int {
        digest.withUnsafeBytes { digest in
            var count = 0
            if leaf {
                for byte in "v1/".utf8 {
                    text[count] = byte
                    count += 1
                }
                text[3] = Digest.digit(digest[0] >> 4)
                text[4] = UInt8(ascii: "/")
                text[5] = Digest.digit(digest[0] & 15)
                count = 6
            }
            if leaf && name {
                text[6] = UInt8(ascii: "/")
                count = 7
            }
            if name {
                for index in 1..<32 {
                    text[count] = Digest.digit(digest[index] >> 4)
                    text[count + 1] = Digest.digit(digest[index] & 15)
                    count += 2
                }
            }
            return count
        }
    }
}
