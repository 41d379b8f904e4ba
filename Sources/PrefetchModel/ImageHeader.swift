/// What the first bytes of an image say.
package struct ImageHeader: Sendable {
    /// The detected format.
    package var format: ImageFormat
    /// Pixels of the upright image; 0 if they were not read.
    package var size: PixelSize
    /// Whether later bytes may still swap the sides, as the EXIF data of PNG and WebP does.
    package var mayTurn: Bool

    package init(format: ImageFormat, size: PixelSize, mayTurn: Bool = false) {
        self.format = format
        self.size = size
        self.mayTurn = mayTurn
    }
}
