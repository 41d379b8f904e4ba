/// The record of one file: 64 bytes in the extended attribute `user.prefetch`.
///
/// At most 64: with its name it just fits behind the inode of an ext4 file (256 bytes), so that it costs no block. Little endian:
///
///     0  version, 2           4  width, u32       16  length, u64
///     1  level passed         8  height, u32      24  stored at, seconds since 1970, u40
///     2  flags               12  of which key     29  colour model (`ImageColorSpace.recordCode`)
///     3  format              32  SHA-256, or 0    30  frames, u16: 65,535 or more
///
/// Flags: 1 = digest, 2 = alpha, 4 to 64 = EXIF orientation.
///
/// At 12 are the last four bytes of the key's digest, which reveal a file under the name of another key. 0: unknown.
public struct CacheRecord: Sendable, Equatable {
    /// The level that the image passed.
    public var level: ValidationLevel
    /// The detected format; `unknown` if not checked.
    public var format: ImageFormat
    /// Pixels; 0 if not checked.
    public var width: Int
    /// Pixels; 0 if not checked.
    public var height: Int
    /// How the image has to be turned.
    public var orientation: ImageOrientation
    /// Frames, at most 65,535; 1 for a still image.
    public var frameCount: Int
    /// Whether pixels may be transparent.
    public var hasAlpha: Bool
    /// The colour model of the file.
    public var colorSpace: ImageColorSpace
    /// Length of the file in bytes; a file of another length is damaged.
    public var length: Int
    /// Digest of the file; nil if not stored.
    public var digest: Digest?
    /// Seconds since 1970.
    public var storedAt: Int

    /// Creates a record.
    public init(
        level: ValidationLevel, format: ImageFormat, width: Int = 0, height: Int = 0,
        orientation: ImageOrientation = .up, frameCount: Int = 1, hasAlpha: Bool = false,
        colorSpace: ImageColorSpace = .unknown, length: Int, digest: Digest?, storedAt: Int
    ) {
        self.orientation = orientation
        self.frameCount = frameCount
        self.hasAlpha = hasAlpha
        self.colorSpace = colorSpace
        self.level = level
        self.format = format
        self.width = width
        self.height = height
        self.length = length
        self.digest = digest
        self.storedAt = storedAt
    }

    package init(_ info: ImageInfo, length: Int, digest: Digest?, storedAt: Int) {
        self.init(
            level: info.level, format: info.format, width: info.width, height: info.height,
            orientation: info.orientation, frameCount: min(info.frameCount, Int(UInt16.max)), hasAlpha: info.hasAlpha,
            colorSpace: info.colorSpace, length: length, digest: digest, storedAt: storedAt)
    }

    /// Takes over what a check found out, except for the level.
    mutating func describe(_ info: ImageInfo) {
        let checked = CacheRecord(info, length: length, digest: digest, storedAt: storedAt)
        let passed = level
        self = checked
        level = passed
    }

    /// What the record says of the image.
    var info: ImageInfo {
        ImageInfo(
            format: format, width: width, height: height, level: level, orientation: orientation,
            frameCount: frameCount, hasAlpha: hasAlpha, colorSpace: colorSpace)
    }

    static let encodedLength = 64
    /// Without extended attributes, a record is a file with the image's name and this suffix.
    static let fileSuffix = ".m"
    private static let version: UInt8 = 2
    private static let digestFlag: UInt8 = 1
    private static let alphaFlag: UInt8 = 2
    private static let orientationShift: UInt8 = 2

    /// Decodes a record; nil if invalid or of an unknown version.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.encodedLength, bytes[0] == Self.version,
            let level = ValidationLevel(rawValue: bytes[1])
        else { return nil }
        func number(_ range: Range<Int>) -> UInt64 { range.reversed().reduce(0) { $0 << 8 | UInt64(bytes[$1]) } }
        guard let length = Int(exactly: number(16..<24)), length <= Plausible.largestImage else { return nil }
        self.init(
            level: level, format: ImageFormat(recordCode: bytes[3]) ?? .unknown, width: Int(number(4..<8)),
            height: Int(number(8..<12)),
            orientation: ImageOrientation(exif: Int(bytes[2] >> Self.orientationShift)),
            frameCount: max(1, Int(number(30..<32))), hasAlpha: bytes[2] & Self.alphaFlag != 0,
            colorSpace: ImageColorSpace(recordCode: bytes[29]), length: length,
            digest: bytes[2] & Self.digestFlag == 0 ? nil : Digest(bytes[32...]),
            storedAt: Plausible.time(Int(number(24..<29))))
    }

    /// Whether the record may belong to the key: it does not name another one.
    static func belongs(_ bytes: [UInt8], to key: CacheKey) -> Bool {
        guard bytes.count == encodedLength, bytes[0] == version else { return true }
        let check = bytes[12..<16]
        return check.allSatisfy { $0 == 0 } || check.elementsEqual(key.check)
    }

    func encoded(for key: CacheKey) -> [UInt8] {
        var bytes = encoded
        for index in 0..<4 { bytes[12 + index] = key.digest[28 + index] }
        return bytes
    }

    var encoded: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.encodedLength) { buffer, count in
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            bytes[0] = Self.version
            bytes[1] = level.rawValue
            bytes[2] =
                (digest == nil ? 0 : Self.digestFlag) | (hasAlpha ? Self.alphaFlag : 0)
                | orientation.rawValue << Self.orientationShift
            bytes[3] = format.recordCode
            bytes.storeBytes(of: UInt32(clamping: width).littleEndian, toByteOffset: 4, as: UInt32.self)
            bytes.storeBytes(of: UInt32(clamping: height).littleEndian, toByteOffset: 8, as: UInt32.self)
            bytes.storeBytes(of: 0, toByteOffset: 12, as: UInt32.self)
            bytes.storeBytes(of: UInt64(clamping: length).littleEndian, toByteOffset: 16, as: UInt64.self)
            // Its highest three bytes are those of the fields behind it.
            bytes.storeBytes(of: UInt64(clamping: storedAt).littleEndian, toByteOffset: 24, as: UInt64.self)
            bytes[29] = colorSpace.recordCode
            bytes.storeBytes(of: UInt16(clamping: frameCount).littleEndian, toByteOffset: 30, as: UInt16.self)
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
