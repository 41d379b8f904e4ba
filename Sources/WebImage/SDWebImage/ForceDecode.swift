/// Which images SDWebImage decodes before a view shows them (`shouldDecodeImage:`), by its generation.
public enum ForceDecode: String, Sendable, CaseIterable {
    /// 3.x: neither animations nor images with alpha.
    case sd3
    /// 4.x: as 3.x.
    case sd4
    /// 5.x: images with alpha too.
    case sd5

    /// Whether an image is decoded; otherwise it is left untouched.
    public func decodes(_ info: ImageInfo) -> Bool { !info.isAnimated && (self == .sd5 || !info.hasAlpha) }
}
