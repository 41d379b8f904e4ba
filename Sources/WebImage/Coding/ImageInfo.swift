/// Result of a check.
public struct ImageInfo: Sendable, Equatable {
    /// The detected format.
    public var format: ImageFormat
    /// Pixels of the file, before ``orientation``; 0 if the header was not read.
    public var width: Int
    /// Pixels of the file, before ``orientation``; 0 if the header was not read.
    public var height: Int
    /// The level that the image passed.
    public var level: ValidationLevel
    /// How the image has to be turned; `up` if the file does not say.
    public var orientation: ImageOrientation
    /// Frames of the file, 1 for a still image. Only the level ``ValidationLevel/structure`` and above count them.
    public var frameCount: Int
    /// Whether pixels may be transparent.
    public var hasAlpha: Bool
    /// The colour model of the file; `unknown` for formats that are not decoded.
    public var colorSpace: ImageColorSpace
    /// The library's warnings about ancillary data (profiles, gamma, stray bytes between markers); the image itself is intact.
    public var warnings: [String]

    /// Creates a result.
    public init(
        format: ImageFormat, width: Int, height: Int, level: ValidationLevel, orientation: ImageOrientation = .up,
        frameCount: Int = 1, hasAlpha: Bool = false, colorSpace: ImageColorSpace = .unknown, warnings: [String] = []
    ) {
        self.format = format
        self.width = width
        self.height = height
        self.level = level
        self.orientation = orientation
        self.frameCount = frameCount
        self.hasAlpha = hasAlpha
        self.colorSpace = colorSpace
        self.warnings = warnings
    }

    /// Whether it has more than one frame (`sd_isAnimated`).
    public var isAnimated: Bool { frameCount > 1 }
    /// Width of the upright image in pixels.
    public var displayWidth: Int { orientation.swapsSides ? height : width }
    /// Height of the upright image in pixels.
    public var displayHeight: Int { orientation.swapsSides ? width : height }
}
