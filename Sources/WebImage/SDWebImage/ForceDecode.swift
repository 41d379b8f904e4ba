extension ImageInfo {
    /// Whether SDWebImage decodes the image before a view shows it (`shouldDecodeImage:`): neither animations nor images with alpha.
    public var isForceDecoded: Bool { !isAnimated && !hasAlpha }
}
