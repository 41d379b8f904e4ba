/// How an image is encoded (SDImageCoderOptions).
public struct ImageEncodeOptions: Sendable, Equatable {
    /// Quality of JPEG and WebP (`encodeCompressionQuality`), 1 to 100; default 90.
    public var quality = 90
    /// The most bytes of a JPEG or WebP (`encodeMaxFileSize`): quality, then size are reduced until it fits; nil (default): any.
    public var maxFileSize: Int?
    /// The size that the image is made to fit, never enlarged (`encodeMaxPixelSize`); nil (default): its own.
    public var maxPixelSize: PixelSize?
    /// The colour under transparent pixels of a JPEG (`encodeBackgroundColor`); default white.
    public var background = ImageColor.white

    /// Default options.
    public init() {}
}
