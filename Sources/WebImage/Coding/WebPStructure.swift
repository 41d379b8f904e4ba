/// Checks the chunks of a WebP (RFC 9649) to the end of its RIFF container, and the headers of its VP8 and VP8L frames.
struct WebPStructure {
    let limits: ImageCoder.Limits

    private enum Chunk {
        static let vp8: UInt32 = 0x5650_3820
        static let vp8l: UInt32 = 0x5650_384C
        static let vp8x: UInt32 = 0x5650_3858
        static let anmf: UInt32 = 0x414E_4D46
    }

    func check(_ reader: inout ByteReader, headerOnly: Bool) throws(ImageFault) -> PixelSize {
        try reader.skip(4)
        let length = try reader.littleEndian32()
        try reader.skip(4)
        if length < 12 { throw ImageFault(.damaged, "WebP with a RIFF size of \(length)") }
        if headerOnly { return try headerSize(&reader) }
        // The size does not include its own field and what precedes it. Trailing bytes are allowed.
        var chunks = try reader.part(length - 4)
        return try checkChunks(&chunks)
    }

    /// The size from the first chunk, which may still be incomplete.
    private func headerSize(_ reader: inout ByteReader) throws(ImageFault) -> PixelSize {
        let name = try reader.name()
        let length = try reader.littleEndian32()
        let size =
            switch name {
            case Chunk.vp8: try VP8Frame.header(&reader, chunkLength: length).size
            case Chunk.vp8l: try losslessSize(&reader)
            case Chunk.vp8x: try canvas(&reader).size
            default: throw ImageFault(.damaged, "WebP without an image at its start")
            }
        try limits.check(size, format: "WebP")
        return size
    }

    private func checkChunks(_ chunks: inout ByteReader) throws(ImageFault) -> PixelSize {
        var size: PixelSize?
        var isAnimation = false
        var frames = FrameCount()
        while chunks.left > 0 {
            var (name, data) = try nextChunk(&chunks)
            switch name {
            case Chunk.vp8x:
                if size != nil { throw ImageFault(.damaged, "WebP with VP8X behind its start") }
                let canvas = try canvas(&data)
                try limits.check(canvas.size, format: "WebP")
                (size, isAnimation) = (canvas.size, canvas.isAnimation)
            case Chunk.vp8, Chunk.vp8l:
                let frame = try checkFrame(name, &data)
                let canvas = size ?? frame
                if isAnimation || canvas != frame || frames.frames > 0 {
                    throw ImageFault(.damaged, "WebP whose image does not fit its header")
                }
                size = frame
                try frames.add(frame, canvas: canvas, limits: limits, format: "WebP")
            case Chunk.anmf:
                guard isAnimation, let canvas = size else {
                    throw ImageFault(.damaged, "WebP with a frame and no animation")
                }
                try frames.add(try checkAnimationFrame(&data), canvas: canvas, limits: limits, format: "WebP")
            default:
                if size == nil { throw ImageFault(.damaged, "WebP without an image at its start") }
            }
        }
        guard let size, frames.frames > 0 else { throw ImageFault(.damaged, "WebP without an image") }
        return size
    }

    /// Chunks of odd length have a padding byte (RFC 9649 section 2.3), which some writers omit at the end of the file.
    private func nextChunk(_ chunks: inout ByteReader) throws(ImageFault) -> (UInt32, ByteReader) {
        let name = try chunks.name()
        let length = try chunks.littleEndian32()
        let data = try chunks.part(length)
        if length & 1 != 0, chunks.left > 0 { try chunks.skip(1) }
        return (name, data)
    }

    /// Section 2.7.1.1: 24-bit position and size, duration, flags; then the chunks of the frame.
    private func checkAnimationFrame(_ data: inout ByteReader) throws(ImageFault) -> PixelSize {
        try data.skip(6)
        let size = PixelSize(width: try data.littleEndian24() + 1, height: try data.littleEndian24() + 1)
        try data.skip(4)
        try limits.check(size, format: "WebP frame")
        var found = false
        while data.left > 0 {
            var (name, bytes) = try nextChunk(&data)
            guard name == Chunk.vp8 || name == Chunk.vp8l else { continue }
            if found { throw ImageFault(.damaged, "WebP frame with two images") }
            found = true
            if try checkFrame(name, &bytes) != size {
                throw ImageFault(.damaged, "WebP frame of another size than announced")
            }
        }
        if !found { throw ImageFault(.damaged, "WebP frame without an image") }
        return size
    }

    private func checkFrame(_ name: UInt32, _ data: inout ByteReader) throws(ImageFault) -> PixelSize {
        let size: PixelSize
        if name == Chunk.vp8l {
            size = try losslessSize(&data)
        } else {
            let frame = try VP8Frame.header(&data, chunkLength: data.left)
            try frame.checkPartitions(&data)
            size = frame.size
        }
        try limits.check(size, format: "WebP")
        return size
    }

    /// RFC 9649 section 3.4: signature, 14 bits each for width - 1 and height - 1, alpha, version 0.
    private func losslessSize(_ data: inout ByteReader) throws(ImageFault) -> PixelSize {
        let signature = try data.byte()
        let bits = try data.littleEndian32()
        guard signature == 0x2F, bits >> 29 == 0 else {
            throw ImageFault(.damaged, "WebP with an unknown VP8L signature")
        }
        return PixelSize(width: bits & 0x3FFF + 1, height: bits >> 14 & 0x3FFF + 1)
    }

    /// Section 2.7: flags, three reserved bytes, 24-bit canvas width and height.
    private func canvas(_ data: inout ByteReader) throws(ImageFault) -> (size: PixelSize, isAnimation: Bool) {
        let flags = try data.byte()
        try data.skip(3)
        let size = PixelSize(width: try data.littleEndian24() + 1, height: try data.littleEndian24() + 1)
        return (size, flags & 0x02 != 0)
    }
}
