/// Image size from a BMP's information header (BITMAPCOREHEADER has 16-bit fields, BITMAPINFOHEADER and later 32-bit).
enum BitmapHeader {
    static func size(_ bytes: UnsafeRawBufferPointer) throws(ImageFault) -> PixelSize {
        var reader = ByteReader(bytes, format: "BMP")
        try reader.skip(14)
        if try reader.littleEndian32() == 12 {
            return PixelSize(width: try reader.littleEndian16(), height: try reader.littleEndian16())
        }
        let width = Int32(truncatingIfNeeded: try reader.littleEndian32())
        // Negative for rows from top to bottom.
        let height = Int32(truncatingIfNeeded: try reader.littleEndian32())
        return PixelSize(width: Int(width), height: abs(Int(height)))
    }
}
