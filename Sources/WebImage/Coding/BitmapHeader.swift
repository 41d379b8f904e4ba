/// The size in a BMP's information header (BITMAPCOREHEADER with 16-bit fields, BITMAPINFOHEADER and later with 32).
enum BitmapHeader {
    static func size(_ bytes: UnsafeRawBufferPointer) throws(ImageFault) -> PixelSize {
        var reader = ByteReader(bytes, format: "BMP")
        try reader.skip(14)
        if try reader.littleEndian32() == 12 {
            return PixelSize(width: try reader.littleEndian16(), height: try reader.littleEndian16())
        }
        let width = Int32(truncatingIfNeeded: try reader.littleEndian32())
        // A negative height means rows from the top.
        let height = Int32(truncatingIfNeeded: try reader.littleEndian32())
        return PixelSize(width: Int(width), height: abs(Int(height)))
    }
}
