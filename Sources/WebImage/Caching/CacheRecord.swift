/// The record of one file: 64 bytes in the extended attribute `user.prefetch`.
///
/// At most 64: with its name it just fits behind the inode of an ext4 file (256 bytes), so that it costs no block. Little endian:
///
///     0  version, 4           4  width, u24               16  length, u40
///     1  level passed         7  height, u24              21  frames, u16: 65,535 or more
///     2  flags               10  width of the original,   23  colour model (`ImageColorSpace.recordCode`)
///     3  format                  u16: 65,535 or more      24  stored at, seconds since 1970, u32
///                            12  height of the original   28  of which file, u32
///                            14  of which key, u16        32  SHA-256, or 0
///
/// Flags: 1 = digest, 2 = alpha, 4 to 64 = EXIF orientation. The format has 4 bits, that of the original the 4 bits above them; width and
/// height of the original are 0 if the file itself is what was fetched.
///
/// At 14 are the last two bytes of the key's digest, which reveal a file under the name of another key; 0: unknown. At 28 is what no copy of
/// the file has (`clinux_stat_file`), so that a record is believed only of the file it was made for.
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
    /// What was fetched, if the file was made of it; nil if the file itself was fetched.
    public var original: OriginalImage?
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
        colorSpace: ImageColorSpace = .unknown, original: OriginalImage? = nil, length: Int, digest: Digest?,
        storedAt: Int
    ) {
        self.original = original
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

    package init(
        _ info: ImageInfo, original: OriginalImage? = nil, length: Int, digest: Digest?, storedAt: Int
    ) {
        self.init(
            level: info.level, format: info.format, width: info.width, height: info.height,
            orientation: info.orientation, frameCount: min(info.frameCount, Int(UInt16.max)), hasAlpha: info.hasAlpha,
            colorSpace: info.colorSpace, original: original, length: length, digest: digest, storedAt: storedAt)
    }

    /// Takes over what a check found out, except for the level.
    mutating func describe(_ info: ImageInfo) {
        let checked = CacheRecord(info, original: original, length: length, digest: digest, storedAt: storedAt)
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
    private static let version: UInt8 = 4
    private static let digestFlag: UInt8 = 1
    private static let alphaFlag: UInt8 = 2
    private static let orientationShift: UInt8 = 2

    /// Decodes a record; nil if invalid or of an unknown version.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.encodedLength, bytes[0] == Self.version,
            let level = ValidationLevel(rawValue: bytes[1])
        else { return nil }
        func number(_ range: Range<Int>) -> UInt64 { range.reversed().reduce(0) { $0 << 8 | UInt64(bytes[$1]) } }
        let length = Int(number(16..<21))
        guard length <= Plausible.largestImage else { return nil }
        let original = OriginalImage(
            format: ImageFormat(recordCode: bytes[3] >> 4) ?? .unknown, width: Int(number(10..<12)),
            height: Int(number(12..<14)))
        self.init(
            level: level, format: ImageFormat(recordCode: bytes[3] & 15) ?? .unknown, width: Int(number(4..<7)),
            height: Int(number(7..<10)),
            orientation: ImageOrientation(exif: Int(bytes[2] >> Self.orientationShift)),
            frameCount: max(1, Int(number(21..<23))), hasAlpha: bytes[2] & Self.alphaFlag != 0,
            colorSpace: ImageColorSpace(recordCode: bytes[23]),
            original: original.width > 0 && original.height > 0 ? original : nil, length: length,
            digest: bytes[2] & Self.digestFlag == 0 ? nil : Digest(bytes[32...]),
            storedAt: Plausible.time(Int(number(24..<28))))
    }

    /// Whether the record may belong to the key: it does not name another one.
    static func belongs(_ bytes: [UInt8], to key: CacheKey) -> Bool {
        guard bytes.count == encodedLength, bytes[0] == version else { return true }
        return bytes[14] == 0 && bytes[15] == 0 || bytes[14] == key.digest[30] && bytes[15] == key.digest[31]
    }

    /// Whether the record was made for the file, and not for one that it is a copy of.
    static func describes(_ bytes: [UInt8], file: UInt32) -> Bool {
        bytes.count == encodedLength && bytes[28..<32].reversed().reduce(0) { $0 << 8 | UInt32($1) } == file
    }

    /// * `file`: what no other file has (`clinux_stat_file`).
    func encoded(for key: CacheKey, file: UInt32) -> [UInt8] {
        var bytes = encoded
        (bytes[14], bytes[15]) = (key.digest[30], key.digest[31])
        for index in 0..<4 { bytes[28 + index] = UInt8(truncatingIfNeeded: file >> (8 * index)) }
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
            bytes[3] = format.recordCode | (original?.format.recordCode ?? 0) << 4
            // In ascending order: each store is of eight bytes, and zeros what follows the number.
            func put(_ value: Int, _ offset: Int, bits: Int) {
                let value = UInt64(min(max(0, value), 1 << bits - 1))
                bytes.storeBytes(of: value.littleEndian, toByteOffset: offset, as: UInt64.self)
            }
            put(width, 4, bits: 24)
            put(height, 7, bits: 24)
            put(original?.width ?? 0, 10, bits: 16)
            put(original?.height ?? 0, 12, bits: 16)
            put(length, 16, bits: 40)
            put(frameCount, 21, bits: 16)
            put(Int(colorSpace.recordCode), 23, bits: 8)
            put(storedAt, 24, bits: 32)
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
