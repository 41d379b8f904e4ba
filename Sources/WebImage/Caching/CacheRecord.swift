/// What the cache knows of one file: 64 bytes in the extended attribute `user.prefetch`.
///
/// 64 and not one more: with its name it just fits behind the inode of an ext4 file (256 bytes), so that it costs no block.
/// Little endian:
///
///     0  version, 1           4  width, u32       16  length, u64
///     1  level passed         8  height, u32      24  stored at, seconds since 1970, i64
///     2  flags: 1 = digest   12  of which key     32  SHA-256, or 0
///     3  format (`ImageFormat.recordCode`)
///
/// At 12 stand the last four bytes of the key's digest: a file under the name of another key is found out. 0: not known.
public struct CacheRecord: Sendable, Equatable {
    /// The level the image passed.
    public var level: ValidationLevel
    /// The format its bytes say; `unknown` where nobody looked.
    public var format: ImageFormat
    /// Pixels; 0 where nobody looked.
    public var width: Int
    /// Pixels; 0 where nobody looked.
    public var height: Int
    /// Length of the file in bytes: a file of another length is damaged.
    public var length: Int
    /// The digest of the file; nil where none is kept.
    public var digest: Digest?
    /// Seconds since 1970.
    public var storedAt: Int

    /// A record of its parts.
    public init(
        level: ValidationLevel, format: ImageFormat, width: Int = 0, height: Int = 0, length: Int, digest: Digest?,
        storedAt: Int
    ) {
        self.level = level
        self.format = format
        self.width = width
        self.height = height
        self.length = length
        self.digest = digest
        self.storedAt = storedAt
    }

    /// The record of an image that was checked just now.
    package init(_ info: ImageInfo, length: Int, digest: Digest?, storedAt: Int) {
        self.init(
            level: info.level, format: info.format, width: info.width, height: info.height, length: length,
            digest: digest,
            storedAt: storedAt)
    }

    static let encodedLength = 64
    /// A record's own file, where there are no extended attributes, has the image's name and this ending.
    static let fileSuffix = ".m"
    private static let version: UInt8 = 1
    private static let hasDigest: UInt8 = 1

    /// Reads a record; nil where it is none of a version this program knows.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.encodedLength, bytes[0] == Self.version,
            let level = ValidationLevel(rawValue: bytes[1])
        else { return nil }
        func number(_ range: Range<Int>) -> UInt64 { range.reversed().reduce(0) { $0 << 8 | UInt64(bytes[$1]) } }
        guard let length = Int(exactly: number(16..<24)), length <= Plausible.largestImage else { return nil }
        self.init(
            level: level, format: ImageFormat(recordCode: bytes[3]) ?? .unknown, width: Int(number(4..<8)),
            height: Int(number(8..<12)), length: length,
            digest: bytes[2] & Self.hasDigest == 0 ? nil : Digest(bytes[32...]),
            storedAt: Plausible.time(Int(truncatingIfNeeded: number(24..<32))))
    }

    /// Whether these bytes may be the record of a key's image: nothing says that they are of another one.
    static func belongs(_ bytes: [UInt8], to key: CacheKey) -> Bool {
        guard bytes.count == encodedLength, bytes[0] == version else { return true }
        let check = bytes[12..<16]
        return check.allSatisfy { $0 == 0 } || check.elementsEqual(key.check)
    }

    /// The record of a key's image.
    func encoded(for key: CacheKey) -> [UInt8] {
        var bytes = encoded
        for index in 0..<4 { bytes[12 + index] = key.digest[28 + index] }
        return bytes
    }

    /// Without saying of which key.
    var encoded: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.encodedLength) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            bytes[0] = Self.version
            bytes[1] = level.rawValue
            bytes[2] = digest == nil ? 0 : Self.hasDigest
            bytes[3] = format.recordCode
            bytes.storeBytes(of: UInt32(clamping: width).littleEndian, toByteOffset: 4, as: UInt32.self)
            bytes.storeBytes(of: UInt32(clamping: height).littleEndian, toByteOffset: 8, as: UInt32.self)
            bytes.storeBytes(of: 0, toByteOffset: 12, as: UInt32.self)
            bytes.storeBytes(of: UInt64(clamping: length).littleEndian, toByteOffset: 16, as: UInt64.self)
            bytes.storeBytes(of: Int64(storedAt).littleEndian, toByteOffset: 24, as: Int64.self)
            let tail = UnsafeMutableRawBufferPointer(rebasing: bytes[32..<64])
            if let digest {
                digest.withUnsafeBytes { tail.copyMemory(from: $0) }
            } else {
                tail.initializeMemory(as: UInt8.self, repeating: 0)
            }
            count = Self.encodedLength
        }
    }
}
