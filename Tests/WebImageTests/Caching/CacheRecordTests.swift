import Origin
import Testing

@testable import WebImage

@Suite("Cache records", .timeLimit(.minutes(5)))
struct CacheRecordTests {
    private static let digest = SHA256.hash([1, 2, 3])

    @Test("A record has the bytes of its table")
    func layout() {
        let record = CacheRecord(
            level: .decode, format: .png, width: 0x0102, height: 0x0304_05, orientation: .right,
            frameCount: 0x0708, hasAlpha: true, colorSpace: .indexed,
            original: OriginalImage(format: .jp2, width: 0x1112, height: 0x1314), length: 0x0B0C_0D0E,
            digest: Self.digest,
            storedAt: 0x6789_ABCD)
        let flags: UInt8 = 1 | 2 | 6 << 2
        let colors: UInt8 = 12 << 4 | 2
        var expected: [UInt8] = [
            4, 3, flags, colors, 0x02, 0x01, 0, 0x05, 0x04, 0x03, 0x12, 0x11, 0x14, 0x13, 0, 0, 0x0E, 0x0D, 0x0C, 0x0B,
            0,
            0x08, 0x07, 3, 0xCD, 0xAB, 0x89, 0x67, 0, 0, 0, 0,
        ]
        expected += Self.digest.bytes
        #expect(record.encoded == expected)
        #expect(CacheRecord(expected) == record)
    }

    @Test("Every format and level comes back", arguments: ImageFormat.allCases)
    func roundTrip(format: ImageFormat) {
        for level in ValidationLevel.allCases {
            for digest in [nil, Self.digest] {
                for (orientation, colorSpace) in zip(
                    ImageOrientation.allCases, ImageColorSpace.allCases + ImageColorSpace.allCases)
                {
                    let record = CacheRecord(
                        level: level, format: format, width: 1, height: 2, orientation: orientation, frameCount: 65_535,
                        hasAlpha: digest == nil, colorSpace: colorSpace, length: 3, digest: digest, storedAt: 4)
                    #expect(CacheRecord(record.encoded) == record)
                    #expect(record.encoded.count == 64)
                }
            }
        }
    }

    @Test("The numbers of the formats never change")
    func numbers() {
        let numbers = ImageFormat.allCases.map { format in
            "\(format.rawValue) \(CacheRecord(level: .none, format: format, length: 0, digest: nil, storedAt: 0).encoded[3])"
        }
        #expect(
            numbers == [
                "jpeg 1", "png 2", "gif 3", "webp 4", "avif 5", "heic 6", "svg 7", "tiff 8", "bmp 9", "ico 10",
                "jxl 11", "jp2 12", "unknown 0",
            ])
    }

    @Test("Garbage is no record, or one that reads back as it was")
    func garbage() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SplitMix64(state: seed)
        let good = CacheRecord(level: .decode, format: .gif, length: 9, digest: Self.digest, storedAt: 1).encoded
        for count in 0..<64 { #expect(CacheRecord(Array(good.prefix(count))) == nil) }
        #expect(CacheRecord(good + [0]) == nil)
        var version = good
        version[0] = 1
        #expect(CacheRecord(version) == nil)
        var level = good
        level[1] = 4
        #expect(CacheRecord(level) == nil)
        for _ in 0..<5000 {
            var bytes = (0..<64).map { _ in UInt8.random(in: 0...255, using: &random) }
            if Bool.random(using: &random) { bytes[0] = 4 }
            if let record = CacheRecord(bytes) { #expect(CacheRecord(record.encoded) == record) }
        }
    }

    @Test("Validators come back; too long ones are left out")
    func validators() {
        var short = HTTPValidators(
            etag: "W/\"a\"", lastModified: "Tue, 15 Nov 1994 12:45:26 GMT", freshUntil: 1_900_000_000)
        #expect(HTTPValidators(short.encoded) == short)
        for count in 0..<short.encoded.count { #expect(HTTPValidators(short.encoded.prefix(count)) == nil) }
        short.contentDigest = SHA256.hash([1])
        #expect(HTTPValidators(short.encoded) == short)
        let long = String(repeating: "k", count: 3000)
        let cut = HTTPValidators(HTTPValidators(etag: long, lastModified: "ü").encoded)
        #expect(cut == HTTPValidators(lastModified: "ü"))
    }
}
