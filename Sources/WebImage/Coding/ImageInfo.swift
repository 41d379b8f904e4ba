/// Result of a check.
public struct ImageInfo: Sendable, Equatable {
    /// The detected format.
    public var format: ImageFormat
    /// Pixels; 0 if the header was not read.
    public var width: Int
    /// Pixels; 0 if the header was not read.
    public var height: Int
    /// The level that the image passed.
    public var level: ValidationLevel
    /// The library's warnings about ancillary data (profiles, gamma, stray bytes between markers); the image itself is intact.
    public var warnings: [String]

    /// Creates a result.
    public init(format: ImageFormat, width: Int, height: Int, level: ValidationLevel, warnings: [String] = []) {
        self.format = format
        self.width = width
        self.height = height
        self.level = level
        self.warnings = warnings
    }
}
