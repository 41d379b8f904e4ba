/// How to treat a complete body in a known format that cannot be verified: HEIC, SVG, TIFF, BMP, ICO, JPEG XL, JPEG 2000, JPEGs with
/// arithmetic coding or 12 bits per sample, and WebP and AVIF without their libraries.
public enum UnverifiableFormats: String, Sendable, CaseIterable {
    /// Ends as ``PrefetchOutcome/unsupported``; nothing is stored. The default.
    case skip
    /// Stored as ``PrefetchOutcome/downloaded``; its record says that it passed only ``ValidationLevel/header``.
    case keep
}
