/// The eight exact arrangements of an image's pixels: quarter turns, mirrored or not.
struct PixelGrid {
    private let source: Bitmap
    /// Where the pixel at (x, y) of the result is in the source: at `origin + x * right + y * down`, counted in pixels.
    private var origin = 0
    private var right = 1
    private var down: Int
    private(set) var size: PixelSize

    init(_ image: Bitmap) {
        source = image
        down = image.width
        size = PixelSize(width: image.width, height: image.height)
    }

    /// Exchanges left and right.
    mutating func mirror() {
        origin += (size.width - 1) * right
        right = -right
    }

    /// Turns counterclockwise by quarters, 0 to 3.
    mutating func turn(_ quarters: Int) {
        for _ in 0..<quarters {
            // The right edge becomes the top edge.
            origin += (size.width - 1) * right
            (right, down) = (down, -right)
            size = PixelSize(width: size.height, height: size.width)
        }
    }

    func image() -> Bitmap {
        guard origin != 0 || right != 1 else { return source }
        let channels = source.hasAlpha ? 4 : 3
        let pixels = [UInt8](unsafeUninitializedCapacity: source.pixels.count) { result, count in
            source.pixels.withUnsafeBufferPointer { source in
                for y in 0..<size.height {
                    var from = (origin + y * down) * channels
                    for _ in 0..<size.width {
                        for channel in 0..<channels { result[count + channel] = source[from + channel] }
                        count += channels
                        from += right * channels
                    }
                }
            }
        }
        return source.remade(size, hasAlpha: source.hasAlpha, pixels: pixels)
    }
}
