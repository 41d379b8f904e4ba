/// The name of an image in the cache: the SHA-256 of its key's bytes.
///
/// Nothing of a URL, a header or an extension reaches a path, so no key can leave the cache directory or hit another's file.
public struct CacheKey: Sendable, Hashable, CustomStringConvertible {
    /// How many lock files transfers are spread over: the kernel walks the locks of a file one by one.
    static let lockFileCount = 16

    /// The digest of the key.
    public let digest: Digest

    /// The name of a key: the absolute URL, or what a `cacheKeyFilter` made of it, byte for byte.
    public init(_ key: String) {
        var key = key
        digest = key.withUTF8 { SHA256.hash(UnsafeRawBufferPointer($0)) }
    }

    init(_ digest: Digest) { self.digest = digest }

    /// The path below the cache directory: `v1/a/b/` and 62 hexadecimal digits.
    public var path: String { text(leaf: true, name: true) }

    /// The path, as in ``path``.
    public var description: String { path }

    /// `v1/a/b`
    var leaf: String { text(leaf: true, name: false) }

    /// The last ``nameLength`` digits.
    var name: String { text(leaf: false, name: true) }

    /// How many leaf directories there are.
    static let leafCount = 256

    /// Digits of a name in its leaf directory.
    static let nameLength = 62

    /// `v1/a/b` of a leaf directory's number.
    static func leaf(_ index: Int) -> String {
        "v1/\(String(index >> 4, radix: 16))/\(String(index & 15, radix: 16))"
    }

    /// Which one this key has, from 0.
    var leafIndex: Int { Int(digest[0]) }

    /// What a record keeps of it.
    var check: [UInt8] { (28..<32).map { digest[$0] } }

    /// Which lock file has this key's byte.
    var lockFile: Int { Int(digest[31]) % Self.lockFileCount }

    /// The byte that is locked, 62 bits: the end of the range must still fit into off_t (fcntl(2)).
    var lockOffset: Int64 {
        var offset: UInt64 = 0
        for index in 16..<24 { offset = offset << 8 | UInt64(digest[index]) }
        return Int64(offset >> 2)
    }

    /// 256 leaves, as git has: with 65,536 a list of ten thousand images makes a directory for nearly each, and a mkdir with its block costs
    /// as much as the image's file. File systems find a name among millions by an index.
    private func text(leaf: Bool, name: Bool) -> String {
        digest.withUnsafeBytes { digest in
            String(unsafeUninitializedCapacity: 69) { text in
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
}
