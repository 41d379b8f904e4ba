/// How an image has to be turned to be seen upright (`UIImageOrientation`), with the values of EXIF's Orientation (EXIF 2.32, 4.6.4).
public enum ImageOrientation: UInt8, Sendable, CaseIterable {
    /// As it is stored.
    case up = 1
    /// Mirrored from left to right.
    case upMirrored
    /// Turned by 180 degrees.
    case down
    /// Mirrored from top to bottom.
    case downMirrored
    /// Mirrored along the diagonal from the top left corner.
    case leftMirrored
    /// To be turned clockwise by 90 degrees.
    case right
    /// Mirrored along the diagonal from the top right corner.
    case rightMirrored
    /// To be turned against the clock by 90 degrees.
    case left

    /// The orientation of a value of EXIF; ``up`` for any other (`sd_imageOrientationFromEXIFOrientation:`).
    public init(exif value: Int) {
        self = UInt8(exactly: value).flatMap(Self.init(rawValue:)) ?? .up
    }

    /// Whether width and height change places.
    public var swapsSides: Bool { rawValue >= ImageOrientation.leftMirrored.rawValue }

    /// Whether the last column of the file is the first one, or the last row, when it is seen upright; by the upright image's axes.
    var startsAtEnd: (across: Bool, down: Bool) {
        switch self {
        case .up, .leftMirrored: (false, false)
        case .upMirrored, .right: (true, false)
        case .down, .rightMirrored: (true, true)
        case .downMirrored, .left: (false, true)
        }
    }
}

/// The colour model of an image's file.
public enum ImageColorSpace: String, Sendable, CaseIterable {
    /// Not known, or of a format that is not decoded.
    case unknown
    /// One channel of grey, with or without alpha.
    case gray
    /// Red, green and blue, or YCbCr.
    case rgb
    /// Numbers of a palette's colors.
    case indexed
    /// Four inks.
    case cmyk
    /// Four inks, of which three are stored as YCbCr.
    case ycck

    /// Identifies it in a cached file's record. Never reassigned.
    var recordCode: UInt8 {
        switch self {
        case .unknown: 0
        case .gray: 1
        case .rgb: 2
        case .indexed: 3
        case .cmyk: 4
        case .ycck: 5
        }
    }

    init(recordCode: UInt8) { self = Self.allCases.first { $0.recordCode == recordCode } ?? .unknown }
}
