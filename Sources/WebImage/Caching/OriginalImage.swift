/// The fetched image that a file of the cache was made of.
public struct OriginalImage: Sendable, Equatable {
    /// The detected format.
    public var format: ImageFormat
    /// Pixels of the upright image; a record keeps at most 65,535.
    public var width: Int
    /// Pixels of the upright image; a record keeps at most 65,535.
    public var height: Int

    /// Creates a description.
    public init(format: ImageFormat, width: Int, height: Int) {
        self.format = format
        self.width = width
        self.height = height
    }

    init(_ info: ImageInfo) {
        self.init(format: info.format, width: info.displayWidth, height: info.displayHeight)
    }
}
