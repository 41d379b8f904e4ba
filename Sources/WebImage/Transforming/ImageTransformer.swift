/// Makes another image of a decoded one (SDImageTransformer). The result is stored under a key of its own
/// (``TransformedKey/key(_:transformerKey:)``).
public protocol ImageTransformer: Sendable {
    /// Names the transformation and its parameters: transformers with equal keys give equal results.
    var transformerKey: String { get }

    /// Transforms an image. May block; called on any thread.
    /// - Parameters:
    ///   - image: the image; the transformers of this package turn it upright first.
    ///   - key: the key of the untransformed image in the cache.
    /// - Returns: the transformed image.
    /// - Throws: `invalidConfiguration` if the transformation does not apply to the image; `localFault` if out of memory.
    func transformedImage(with image: Bitmap, for key: String) throws(WebImageError) -> Bitmap
}
