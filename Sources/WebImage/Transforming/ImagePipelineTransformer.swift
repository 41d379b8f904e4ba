/// Several transformers, one after the other (SDImagePipelineTransformer).
public struct ImagePipelineTransformer: ImageTransformer {
    /// The transformers, the first one first.
    public let transformers: [any ImageTransformer]

    /// Creates a transformer of several; of none, it keeps an image as it is.
    public init(transformers: [any ImageTransformer]) {
        self.transformers = transformers
    }

    /// Their keys, separated by hyphens.
    public var transformerKey: String {
        transformers.map(\.transformerKey).joined(separator: TransformedKey.separator)
    }

    /// Applies them in their order; each gets `key`.
    public func transformedImage(with image: Bitmap, for key: String) throws(WebImageError) -> Bitmap {
        var image = image
        for transformer in transformers { image = try transformer.transformedImage(with: image, for: key) }
        return image
    }
}
