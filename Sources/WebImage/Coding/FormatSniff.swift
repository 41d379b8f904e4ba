/// Detects the format from the first bytes. Signatures: WHATWG "MIME Sniffing" section 6.1 for JPEG, PNG, GIF, WebP, BMP and ICO; TIFF 6.0
/// section 2 and BigTIFF; ISO/IEC 23008-12 annex B and the AV1 Image File Format section 4 for the brands of `ftyp`; ISO/IEC 18181-2 for
/// JPEG XL; ISO/IEC 15444-1 annex I for JPEG 2000.
enum FormatSniff: Equatable {
    case format(ImageFormat)
    /// More bytes are needed.
    case undecided
    case noImage

    /// Except for the brand list of `ftyp`.
    private static let longestSignature = 12
    private static let longestBrandList = 256

    init(_ prefix: UnsafeRawBufferPointer) {
        guard let first = prefix.first else {
            self = .undecided
            return
        }
        if let format = Self.signature(first, prefix) {
            self = .format(format)
            return
        }
        let brands = Self.brands(prefix)
        if brands != .noImage {
            self = brands
            return
        }
        let markup = SVGSniff.sniff(prefix)
        if markup != .noImage {
            self = markup
            return
        }
        let mayBecome = prefix.count < Self.longestSignature && first != UInt8(ascii: "<")
        self = mayBecome || (first == UInt8(ascii: "B") && prefix.count < 18) ? .undecided : .noImage
    }

    private static func signature(_ first: UInt8, _ prefix: UnsafeRawBufferPointer) -> ImageFormat? {
        switch first {
        case 0xFF:
            if prefix.starts(with: [0xFF, 0xD8, 0xFF]) { return .jpeg }
            if prefix.starts(with: [0xFF, 0x4F, 0xFF, 0x51]) { return .jp2 }
            // Only two bytes: FF 0A is followed by the image's size.
            if prefix.starts(with: [0xFF, 0x0A]) { return .jxl }
        case 0x89:
            if prefix.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return .png }
        case UInt8(ascii: "G"):
            if prefix.starts(with: "GIF87a".utf8) || prefix.starts(with: "GIF89a".utf8) { return .gif }
        case UInt8(ascii: "R"):
            if prefix.starts(with: "RIFF".utf8), prefix.dropFirst(8).starts(with: "WEBP".utf8) { return .webp }
        case UInt8(ascii: "I"):
            if prefix.starts(with: [0x49, 0x49, 0x2A, 0x00]) || prefix.starts(with: [0x49, 0x49, 0x2B, 0x00]) {
                return .tiff
            }
        case UInt8(ascii: "M"):
            if prefix.starts(with: [0x4D, 0x4D, 0x00, 0x2A]) || prefix.starts(with: [0x4D, 0x4D, 0x00, 0x2B]) {
                return .tiff
            }
        case UInt8(ascii: "B"):
            if isBitmap(prefix) { return .bmp }
        case 0x00:
            if prefix.starts(with: [0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]) { return .jxl }
            if prefix.starts(with: [0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A]) { return .jp2 }
            // The number of images is nonzero, and the reserved byte of the first entry is 0.
            if prefix.count >= 10, prefix.starts(with: [0, 0, 1, 0]), prefix[4] | prefix[5] != 0, prefix[9] == 0 {
                return .ico
            }
        default: break
        }
        return nil
    }

    /// "BM" alone could be text: also require reserved fields of 0 and one of seven header lengths.
    private static func isBitmap(_ prefix: UnsafeRawBufferPointer) -> Bool {
        guard prefix.count >= 18, prefix.starts(with: "BM".utf8), prefix[6..<10].allSatisfy({ $0 == 0 }) else {
            return false
        }
        let length = prefix.loadUnaligned(fromByteOffset: 14, as: UInt32.self).littleEndian
        return [12, 40, 52, 56, 64, 108, 124].contains(length)
    }

    /// The `ftyp` box of an ISO base media file: major brand, then compatible brands. `mif1` and `msf1` only mean "HEIF".
    private static func brands(_ prefix: UnsafeRawBufferPointer) -> FormatSniff {
        guard prefix.count >= 12, prefix[4..<8].elementsEqual("ftyp".utf8) else { return .noImage }
        let boxLength = Int(prefix.loadUnaligned(as: UInt32.self).bigEndian)
        let end = min(boxLength, longestBrandList)
        var offset = 8
        while offset + 4 <= min(end, prefix.count) {
            switch String(decoding: prefix[offset..<offset + 4], as: UTF8.self) {
            case "avif", "avis": return .format(.avif)
            case "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs": return .format(.heic)
            default: offset += offset == 8 ? 8 : 4
            }
        }
        return prefix.count < end ? .undecided : .noImage
    }
}

extension ImageFormat {
    /// Detects the format from the first bytes; nil for no known signature or an incomplete one.
    public init?(sniffing prefix: UnsafeRawBufferPointer) {
        guard case .format(let format) = FormatSniff(prefix) else { return nil }
        self = format
    }
}
