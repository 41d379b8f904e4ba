/// An image format, told by the first bytes of the data and never by a name or a Content-Type.
///
/// The raw value is what manifests, JSON and file records say; ``recordCode`` is stable for ever.
public enum ImageFormat: String, Sendable, CaseIterable {
    case jpeg, png, gif, webp, avif, heic, svg, tiff, bmp, ico, jxl, jp2
}
