/// How far an image is checked before it counts as finished. Each level includes the ones before it.
public enum ValidationLevel: UInt8, Sendable, Comparable, CaseIterable {
    /// Nothing is looked at.
    case none = 0
    /// The format's signature and sane dimensions.
    case header = 1
    /// The structure to its last byte: JPEG to EOI, PNG chunks with their CRC to IEND, GIF to its trailer, WebP's RIFF size.
    case structure = 2
    /// A full decode without an error and without a warning that image data is missing or damaged.
    case decode = 3

    /// By its name on the command line.
    public init?(name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }

    /// The name on the command line and in manifests.
    public var name: String {
        switch self {
        case .none: "none"
        case .header: "header"
        case .structure: "structure"
        case .decode: "decode"
        }
    }

    /// By how far they check.
    public static func < (lhs: Self, rhs: Self) -> Bool { lhs.rawValue < rhs.rawValue }
}
