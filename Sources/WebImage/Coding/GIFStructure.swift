/// Checks the blocks of a GIF (GIF89a specification) from header to trailer; LZW data is skipped to its terminator, not decoded.
struct GIFStructure {
    let limits: ImageCoder.Limits

    /// - Returns: the logical screen's size.
    func check(_ reader: inout ByteReader, headerOnly: Bool) throws(ImageFault) -> PixelSize {
        try reader.skip(6)
        let screen = PixelSize(width: try reader.littleEndian16(), height: try reader.littleEndian16())
        try limits.check(screen, format: "GIF")
        if headerOnly { return screen }
        let flags = try reader.byte()
        try reader.skip(2)
        try skipColorTable(flags, &reader)
        var frames = FrameCount()
        while true {
            let introducer = try reader.byte()
            switch introducer {
            case 0x21:
                try reader.skip(1)
                _ = try skipSubBlocks(&reader)
            case 0x2C:
                try checkImage(&reader, screen: screen, &frames)
            case 0x3B:
                if frames.frames == 0 { throw ImageFault(.damaged, "GIF without an image") }
                return screen
            default:
                throw ImageFault(.damaged, "GIF block 0x\(String(introducer, radix: 16)) at byte \(reader.offset - 1)")
            }
        }
    }

    private func checkImage(
        _ reader: inout ByteReader, screen: PixelSize, _ frames: inout FrameCount
    ) throws(ImageFault) {
        try reader.skip(4)
        let size = PixelSize(width: try reader.littleEndian16(), height: try reader.littleEndian16())
        try limits.check(size, format: "GIF frame")
        try frames.add(size, canvas: screen, limits: limits, format: "GIF")
        try skipColorTable(try reader.byte(), &reader)
        // Section 22: bits per index; codes have at most 12 bits (appendix F).
        let codeSize = try reader.byte()
        if codeSize == 0 || codeSize > 11 { throw ImageFault(.damaged, "GIF with an LZW code size of \(codeSize)") }
        if try skipSubBlocks(&reader) == 0 { throw ImageFault(.damaged, "GIF with an image without data") }
    }

    private func skipColorTable(_ flags: Int, _ reader: inout ByteReader) throws(ImageFault) {
        if flags & 0x80 != 0 { try reader.skip(3 << (flags & 7 + 1)) }
    }

    /// - Returns: the number of data bytes, without lengths and terminator.
    private func skipSubBlocks(_ reader: inout ByteReader) throws(ImageFault) -> Int {
        var total = 0
        while true {
            let length = try reader.byte()
            if length == 0 { return total }
            try reader.skip(length)
            total += length
        }
    }
}
