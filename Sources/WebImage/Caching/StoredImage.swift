/// An image as a ``DiskImageStore`` keeps it.
public struct StoredImage: Sendable {
    /// Its bytes: in memory, or in an unnamed file where they are many.
    public var body: ImageBody
    /// What its check found out. To be kept with the bytes; an image that comes back without it is verified again.
    public var record: CacheRecord?
    /// What a later request needs to ask only for a change; nil where nobody asked to keep it.
    public var validators: HTTPValidators?

    /// An image of its parts.
    public init(body: ImageBody, record: CacheRecord?, validators: HTTPValidators? = nil) {
        self.body = body
        self.record = record
        self.validators = validators
    }
}
