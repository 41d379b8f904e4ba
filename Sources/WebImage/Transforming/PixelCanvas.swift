/// Pixels of one colour that an image is placed on, whole or in part.
struct PixelCanvas {
    var size: PixelSize
    var hasAlpha: Bool
    /// Its alpha counts if the canvas has alpha.
    var color: ImageColor

    /// The canvas with an image whose top left corner is at (x, y); what lies outside is cut off. Pixels replace those of the canvas.
    /// * `image`: without alpha if the canvas has none.
    func drawing(_ image: Bitmap, x: Int, y: Int) -> Bitmap {
        let (from, to) = (image.hasAlpha ? 4 : 3, hasAlpha ? 4 : 3)
        let (low, high) = (max(0, -x), min(image.width, size.width - x))
        let (top, end) = (max(0, -y), min(image.height, size.height - y))
        var pixels = filled(to)
        if low < high, top < end {
            pixels.withUnsafeMutableBytes { pixels in
                image.pixels.withUnsafeBytes { source in
                    for row in top..<end {
                        let bytes = source[((row * image.width) + low) * from..<((row * image.width) + high) * from]
                        let start = ((row + y) * size.width + low + x) * to
                        if from == to {
                            UnsafeMutableRawBufferPointer(rebasing: pixels[start..<start + bytes.count]).copyBytes(
                                from: bytes)
                        } else {
                            for pixel in 0..<high - low {
                                for channel in 0..<3 {
                                    pixels[start + 4 * pixel + channel] =
                                        bytes[bytes.startIndex + 3 * pixel + channel]
                                }
                                pixels[start + 4 * pixel + 3] = 255
                            }
                        }
                    }
                }
            }
        }
        return image.remade(size, hasAlpha: hasAlpha, pixels: pixels)
    }

    private func filled(_ channels: Int) -> [UInt8] {
        let count = size.width * size.height * channels
        let pixel = [color.red, color.green, color.blue, color.alpha]
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
            var at = 0
            while at < count {
                for channel in 0..<channels { buffer[at + channel] = pixel[channel] }
                at += channels
            }
            written = count
        }
    }
}
