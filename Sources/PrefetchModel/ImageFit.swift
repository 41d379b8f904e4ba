/// How an image fills the size that it is resized to. Proportions are kept.
public enum ImageFit: String, Sendable, CaseIterable {
    /// The whole image, at most as wide and as high as the size.
    case inside
    /// The whole image, its shorter side as long as that of the size.
    case shorter
    /// Exactly the size; what does not fit is cut off evenly on both sides.
    case cover
    /// Exactly the size: the whole image in its middle, with a background around it.
    case pad
}
