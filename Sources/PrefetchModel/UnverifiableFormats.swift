/// What becomes of a whole body in a known format that cannot be verified: AVIF, HEIC, SVG, TIFF, BMP, ICO, JPEG XL, JPEG 2000, and JPEGs
/// with arithmetic coding or 12 bits a sample.
public enum UnverifiableFormats: String, Sendable, CaseIterable, Codable {
    /// It ends as ``PrefetchOutcome/unsupported``, and nothing is stored. The default.
    case skip
    /// It is stored as ``PrefetchOutcome/downloaded``; its record says that it passed no more than ``ValidationLevel/header``.
    case keep
}
