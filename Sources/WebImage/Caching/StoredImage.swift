/// An image in a ``DiskImageStore``.
public struct StoredImage: Sendable {
    /// The bytes: in memory, or in an unnamed file if large.
    public var body: ImageBody
    /// Result of its check, to be stored with the bytes; an image returned without it is verified again.
    public var record: CacheRecord?
    /// Validators for a conditional request; nil if not requested.
    public var validators: HTTPValidators?

    /// Creates an image.
    public init(body: ImageBody, record: CacheRecord?, validators: HTTPValidators? = nil) {
        self.body = body
        self.record = record
        self.validators = validators
    }
}
