/// How thoroughly an image is checked before it counts as finished. Each level includes the previous ones.
public enum ValidationLevel: UInt8, Sendable, Comparable, CaseIterable {
    /// No check.
    case none = 0
    /// Signature and plausible dimensions.
    case header = 1
    /// The complete structure: JPEG to EOI, PNG chunks with their CRC to IEND, GIF to its trailer, WebP's RIFF size.
    case structure = 2
    /// A full decode without an error or a warning about missing or damaged image data.
    case decode = 3

    /// Looks up a level by its name on the command line.
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

    /// Compares by thoroughness.
    public static func < (lhs: Self, rhs: Self) -> Bool { lhs.rawValue < rhs.rawValue }
}
