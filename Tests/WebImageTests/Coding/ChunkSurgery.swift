import CReferenceCodec

/// Cuts JPEG and PNG files open and puts them together again.
enum ChunkSurgery {
    /// The same JPEG with an empty DNL as its first segment: own readers leave it to libjpeg, to which it means nothing.
    static func withEmptyDNL(_ jpeg: [UInt8]) -> [UInt8] { jpeg[..<2] + [0xFF, 0xDC, 0, 2] + jpeg[2...] }

    /// A PNG chunk with its CRC.
    static func pngChunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + data
        return bigEndian(data.count) + body + bigEndian(Int(reference_crc32(body, body.count)))
    }

    /// The PNG with chunks put before the first one called `name`.
    static func insert(_ chunks: [UInt8], before name: String, in png: [UInt8]) -> [UInt8] {
        let place = offset(of: Array(name.utf8), in: png) - 4
        return Array(png[..<place]) + chunks + png[place...]
    }

    /// The chunk of that name in a PNG: its data.
    static func data(of name: String, in png: [UInt8]) -> [UInt8] {
        let place = offset(of: Array(name.utf8), in: png)
        let length = png[(place - 4)..<place].reduce(0) { $0 << 8 | Int($1) }
        return Array(png[(place + 4)..<(place + 4 + length)])
    }

    /// A PNG of its signature and IHDR alone.
    static func pngHeader(width: Int, height: Int) -> [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            + pngChunk("IHDR", bigEndian(width) + bigEndian(height) + [8, 2, 0, 0, 0])
    }

    /// The PNG with the CRC of each chunk made right, as far as the lengths lead.
    static func repaired(_ png: [UInt8]) -> [UInt8] {
        var (result, start) = (png, 8)
        while start + 12 <= png.count {
            let length = png[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            guard start + 12 + length <= png.count else { break }
            let body = Array(png[start + 4..<start + 8 + length])
            let end = start + 8 + length
            result.replaceSubrange(end..<end + 4, with: bigEndian(Int(reference_crc32(body, body.count))))
            start = end + 4
        }
        return result
    }

    /// The first place of a sequence; the tests only look for what is there.
    static func offset(of pattern: [UInt8], in bytes: [UInt8]) -> Int {
        (0...(bytes.count - pattern.count)).first { bytes[$0..<$0 + pattern.count].elementsEqual(pattern) }
            ?? bytes.count
    }

    static func lastOffset(of pattern: [UInt8], in bytes: [UInt8]) -> Int {
        (0...(bytes.count - pattern.count)).last { bytes[$0..<$0 + pattern.count].elementsEqual(pattern) }
            ?? bytes.count
    }

    static func bigEndian(_ value: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) } }
}
