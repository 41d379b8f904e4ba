/// What a check found out about an image.
public struct ImageInfo: Sendable, Equatable {
    /// The format its bytes say.
    public var format: ImageFormat
    /// Pixels; 0 where the format's header was not read.
    public var width: Int
    /// Pixels; 0 where the format's header was not read.
    public var height: Int
    /// The level that was passed.
    public var level: ValidationLevel
    /// Warnings about ancillary data (profiles, gamma, stray bytes between markers), in the library's words; the image is whole.
    public var warnings: [String]

    /// The result of a check.
    public init(format: ImageFormat, width: Int, height: Int, level: ValidationLevel, warnings: [String] = []) {
        self.format = format
        self.width = width
        self.height = height
        self.level = level
        self.warnings = warnings
    }
}
