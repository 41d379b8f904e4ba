/// Data of an image file that travels with its pixels.
public struct ImageMetadata: Sendable, Equatable {
    /// EXIF data, from its TIFF header on; empty if there is none.
    public var exif: [UInt8]
    /// The ICC colour profile; empty if there is none. Pixels are never converted by it.
    public var iccProfile: [UInt8]

    /// No metadata, unless given.
    public init(exif: [UInt8] = [], iccProfile: [UInt8] = []) {
        self.exif = exif
        self.iccProfile = iccProfile
    }
}
