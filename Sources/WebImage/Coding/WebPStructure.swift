/// Checks the chunks of a WebP (RFC 9649) to the end of its RIFF container, and the headers of its VP8 and VP8L frames.
///
/// What libwebp's demuxer takes, by which browsers and Pillow read a WebP, is taken, and nothing else: every chunk has its padding; of a file without VP8X
/// nothing counts behind its image; and the image of a frame is the chunks behind ANMF's own fields, whatever length and size ANMF gives.
struct WebPStructure {
    let limits: ImageCoder.Limits

    private enum Chunk {
        static let vp8: UInt32 = 0x5650_3820
        static let vp8l: UInt32 = 0x5650_384C
        static let vp8x: UInt32 = 0x5650_3858
        static let alph: UInt32 = 0x414C_5048
        static let anim: UInt32 = 0x414E_494D
        static let anmf: UInt32 = 0x414E_4D46
        static let exif: UInt32 = 0x4558_4946
    }

    /// Bytes that libwebp allocates, at most.
    struct Memory {
        /// For the tables of prefix codes.
        var tables = 0
        /// For the rest of a check.
        var pixels = 0

        var check: Int { 1 << 20 + pixels + tables }

        /// With 12 million pixels libwebp 1.2.4 took 1.6 bytes a pixel of VP8, 3.0 more of an alpha channel, and 8.1 of VP8L.
        mutating func add(bytesPerPixel: Int, _ size: PixelSize, tables: Int = 0) {
            // One image has one of them: alpha channels are those of VP8.
            self.tables = max(self.tables, tables)
            pixels += bytesPerPixel * size.width * size.height
        }

        mutating func raise(to other: Memory) {
            (tables, pixels) = (max(tables, other.tables), max(pixels, other.pixels))
        }
    }

    /// Chunks of a file: libwebp looks at few, and a file of 64 MiB has room for 8 million.
    private static let mostChunks = 1_000_000
    /// Symbols and bits that may be read for the prefix codes of all images, besides 16 for each byte: half a second.
    private static let mostSteps: UInt64 = 100_000_000

    /// Of the image that takes most, in a file that has been checked.
    func memory(_ bytes: UnsafeRawBufferPointer, _ info: ImageInfo) throws(ImageFault) -> Memory {
        var reader = ByteReader(bytes, format: "WebP")
        try reader.skip(4)
        let length = try reader.littleEndian32()
        try reader.skip(4)
        var chunks = try reader.part(length - 4)
        var (own, most, size) = (Memory(), Memory(), PixelSize(width: info.width, height: info.height))
        var steps: UInt64 = 0
        let limit = Self.mostSteps + 16 * UInt64(bytes.count)
        let isExtended = bytes.count > 15 && bytes[15] == UInt8(ascii: "X")
        while chunks.left > 0, isExtended || own.pixels == 0 {
            guard steps <= limit else {
                throw ImageFault(
                    .overLimit(.decodeTime),
                    "WebP whose prefix codes take more than \(limit) steps (--validate structure takes it undecoded)")
            }
            var (name, data) = try nextChunk(&chunks)
            switch name {
            case Chunk.anmf:
                most.raise(to: own)
                own = Memory()
                size = try imageSize(chunks) ?? size
            case Chunk.vp8: own.add(bytesPerPixel: 2, size)
            case Chunk.vp8l:
                let header = try losslessHeader(&data)
                own.add(
                    bytesPerPixel: 9, header.size,
                    tables: ImageCodec.tableMemory(lossless: data.rest, header.size, steps: &steps))
            case Chunk.alph where data.left > 0:
                // RFC 9649 section 2.7.1.2: the method is in the two low bits, and 1 is lossless, without a header. Then it may take four
                // bytes a pixel, instead of one, beside the plane it goes to.
                let isLossless = try data.byte() & 3 == 1
                own.add(
                    bytesPerPixel: isLossless ? 6 : 3, size,
                    tables: isLossless ? ImageCodec.tableMemory(lossless: data.rest, size, steps: &steps) : 0)
            default: break
            }
        }
        most.raise(to: own)
        return most
    }

    /// Of the frame whose chunks are next.
    private func imageSize(_ chunks: ByteReader) throws(ImageFault) -> PixelSize? {
        var chunks = chunks
        while chunks.left > 0 {
            var (name, data) = try nextChunk(&chunks)
            switch name {
            case Chunk.vp8: return try VP8Frame.header(&data, chunkLength: data.left).size
            case Chunk.vp8l: return try losslessHeader(&data).size
            case Chunk.alph: continue
            default: return nil
            }
        }
        return nil
    }

    func check(_ reader: inout ByteReader, headerOnly: Bool) throws(ImageFault) -> ImageInfo {
        try reader.skip(4)
        let length = try reader.littleEndian32()
        try reader.skip(4)
        if length < 12 { throw ImageFault(.damaged, "WebP with a RIFF size of \(length)") }
        if headerOnly { return try headerSize(&reader) }
        // The size does not include its own field and what precedes it. Trailing bytes are allowed.
        var chunks = try reader.part(length - 4)
        return try checkChunks(&chunks)
    }

    /// The first chunk, which may still be incomplete.
    private func headerSize(_ reader: inout ByteReader) throws(ImageFault) -> ImageInfo {
        let name = try reader.name()
        let length = try reader.littleEndian32()
        var info = Self.info
        switch name {
        case Chunk.vp8:
            info.size = try VP8Frame.header(&reader, chunkLength: length).size
            try limits.check(info.size, format: "WebP")
        case Chunk.vp8l:
            (info.size, info.hasAlpha) = try losslessHeader(&reader)
            try limits.check(info.size, format: "WebP", wholeKind: "WebP")
        case Chunk.vp8x:
            let canvas = try canvas(&reader)
            (info.size, info.hasAlpha) = (canvas.size, canvas.hasAlpha)
            try limits.check(info.size, format: "WebP", wholeKind: canvas.wholeKind)
        default: throw ImageFault(.damaged, "WebP without an image at its start")
        }
        return info
    }

    private static var info: ImageInfo {
        ImageInfo(format: .webp, width: 0, height: 0, level: .header, colorSpace: .rgb)
    }

    private func checkChunks(_ chunks: inout ByteReader) throws(ImageFault) -> ImageInfo {
        var info = Self.info
        var canvas: Canvas?
        var frames = FrameCount()
        var hasAnimation = false
        var count = 0
        while chunks.left > 0 {
            let start = chunks
            var (name, data) = try nextChunk(&chunks)
            switch name {
            case Chunk.vp8x:
                if info.width > 0 { throw ImageFault(.damaged, "WebP with VP8X behind its start") }
                let found = try self.canvas(&data)
                try limits.check(found.size, format: "WebP", wholeKind: found.wholeKind)
                canvas = found
                (info.size, info.hasAlpha) = (found.size, found.hasAlpha)
            case Chunk.vp8, Chunk.vp8l, Chunk.alph:
                chunks = start
                guard let image = try readImage(&chunks, &count), !hasAnimation, frames.frames == 0,
                    canvas.map({ $0.isAnimation == false && $0.size == image.size }) ?? (name != Chunk.alph),
                    canvas?.hasAlpha != true || !image.hasAlphaBehind
                else { throw ImageFault(.damaged, "WebP whose image does not fit its header") }
                info.size = image.size
                info.hasAlpha = info.hasAlpha || image.hasAlpha
                try frames.add(limits: limits, format: "WebP")
            case Chunk.anim:
                // Background and loop count.
                if data.left < 5 { throw ImageFault(.damaged, "WebP with an ANIM chunk of invalid length") }
                hasAnimation = true
            case Chunk.anmf:
                guard let canvas, canvas.isAnimation, hasAnimation else {
                    throw ImageFault(.damaged, "WebP with a frame and no animation")
                }
                let isFrame = try checkAnimationFrame(start, &chunks, canvas.size, &count)
                if isFrame { try frames.add(limits: limits, format: "WebP") }
            default:
                if info.width == 0 { throw ImageFault(.damaged, "WebP without an image at its start") }
                if name == Chunk.exif, info.orientation == .up { info.orientation = Self.orientation(data.rest) }
            }
            try Self.add(1, to: &count)
            if canvas == nil { break }
        }
        guard info.width > 0, frames.frames > 0 else { throw ImageFault(.damaged, "WebP without an image") }
        info.frameCount = frames.frames
        return info
    }

    private static func add(_ chunks: Int, to count: inout Int) throws(ImageFault) {
        count += chunks
        guard count <= mostChunks else {
            throw ImageFault(
                .overLimit(.codecLimit), "WebP with more than \(mostChunks) chunks (--validate none takes it unchecked)"
            )
        }
    }

    /// Some writers put JPEG's prefix before the data.
    private static func orientation(_ exif: UnsafeRawBufferPointer) -> ImageOrientation {
        let prefix = exif.starts(with: "Exif\0\0".utf8) ? 6 : 0
        return ImageCodec.orientation(ofEXIF: UnsafeRawBufferPointer(rebasing: exif[prefix...]))
    }

    /// Chunks of odd length have a padding byte (RFC 9649 section 2.3), the last one too. Of ANMF only its own fields are passed.
    private func nextChunk(_ chunks: inout ByteReader) throws(ImageFault) -> (UInt32, ByteReader) {
        let name = try chunks.name()
        let length = try chunks.littleEndian32()
        var behind = chunks
        var data = try behind.part(length)
        try behind.skip(length & 1)
        if name == Chunk.anmf { data = try chunks.part(Self.frameFields) } else { chunks = behind }
        return (name, data)
    }

    /// Section 2.7.1.1: 24-bit position and size, duration, flags.
    private static let frameFields = 16

    private struct Image {
        var size: PixelSize
        var hasAlpha: Bool
        var hasAlphaBehind = false
    }

    /// The chunks of an image, which end where another one is; nil: there are none.
    private func readImage(_ chunks: inout ByteReader, _ count: inout Int) throws(ImageFault) -> Image? {
        var image: Image?
        var hasAlpha = false
        while chunks.left > 0 {
            var ahead = chunks
            var (name, data) = try nextChunk(&ahead)
            if name == Chunk.alph, !hasAlpha {
                hasAlpha = true
                image?.hasAlphaBehind = true
            } else if name == Chunk.vp8 || name == Chunk.vp8l, image == nil {
                if name == Chunk.vp8l, hasAlpha { throw ImageFault(.damaged, "WebP with two alpha channels") }
                let frame = try checkFrame(name, &data)
                image = Image(size: frame.size, hasAlpha: frame.hasAlpha)
            } else {
                break
            }
            try Self.add(1, to: &count)
            chunks = ahead
        }
        if image == nil, hasAlpha { throw ImageFault(.damaged, "WebP with an alpha channel and no image") }
        return image
    }

    /// Whether there is an image behind the fields of the ANMF chunk at `start`.
    private func checkAnimationFrame(
        _ start: ByteReader, _ chunks: inout ByteReader, _ canvas: PixelSize, _ count: inout Int
    ) throws(ImageFault) -> Bool {
        var data = start
        try data.skip(4)
        let length = try data.littleEndian32()
        let end = data.left - length - length & 1
        let (x, y) = (2 * (try data.littleEndian24()), 2 * (try data.littleEndian24()))
        let (width, height) = (try data.littleEndian24() + 1, try data.littleEndian24() + 1)
        guard length + length & 1 >= Self.frameFields, width * height < 1 << 32 else {
            throw ImageFault(.damaged, "WebP with an invalid frame")
        }
        guard let image = try readImage(&chunks, &count) else { return false }
        try limits.check(image.size, format: "WebP frame", wholeKind: "WebP")
        guard chunks.left >= end, !image.hasAlphaBehind else {
            throw ImageFault(.damaged, "WebP whose frame does not fit its chunk")
        }
        guard x + image.size.width <= canvas.width, y + image.size.height <= canvas.height else {
            throw ImageFault(.damaged, "WebP with a frame outside of the image")
        }
        return true
    }

    private func checkFrame(
        _ name: UInt32, _ data: inout ByteReader
    ) throws(ImageFault) -> (size: PixelSize, hasAlpha: Bool) {
        let header: (size: PixelSize, hasAlpha: Bool)
        if name == Chunk.vp8l {
            header = try losslessHeader(&data)
            try limits.check(header.size, format: "WebP", wholeKind: "WebP")
        } else {
            let frame = try VP8Frame.header(&data, chunkLength: data.left)
            try frame.checkPartitions(&data)
            header = (frame.size, false)
            try limits.check(header.size, format: "WebP")
        }
        return header
    }

    /// RFC 9649 section 3.4: signature, 14 bits each for width - 1 and height - 1, alpha, version 0.
    private func losslessHeader(_ data: inout ByteReader) throws(ImageFault) -> (size: PixelSize, hasAlpha: Bool) {
        let signature = try data.byte()
        let bits = try data.littleEndian32()
        guard signature == 0x2F, bits >> 29 == 0 else {
            throw ImageFault(.damaged, "WebP with an unknown VP8L signature")
        }
        return (PixelSize(width: bits & 0x3FFF + 1, height: bits >> 14 & 0x3FFF + 1), bits >> 28 & 1 == 1)
    }

    private struct Canvas {
        var size: PixelSize
        var isAnimation: Bool
        var hasAlpha: Bool

        /// What ``ImageCoder/Limits/maxWholePixels`` is for: the symbols of other images may be read without libwebp, which keeps the pixels.
        var wholeKind: String? { isAnimation || hasAlpha ? "WebP" : nil }
    }

    /// Section 2.7: flags, three reserved bytes, 24-bit canvas width and height.
    private func canvas(_ data: inout ByteReader) throws(ImageFault) -> Canvas {
        let flags = try data.byte()
        if flags & 0xC1 != 0 { throw ImageFault(.damaged, "WebP with a feature that does not exist") }
        try data.skip(3)
        let size = PixelSize(width: try data.littleEndian24() + 1, height: try data.littleEndian24() + 1)
        return Canvas(size: size, isAnimation: flags & 0x02 != 0, hasAlpha: flags & 0x10 != 0)
    }
}

extension ImageInfo {
    fileprivate var size: PixelSize {
        get { PixelSize(width: width, height: height) }
        set { (width, height) = (newValue.width, newValue.height) }
    }
}
