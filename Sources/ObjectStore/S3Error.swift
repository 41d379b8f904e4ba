/// Why an object store did not do what was asked.
package struct S3Error: Error, Sendable {
    package enum Kind: Sendable {
        /// An address, a variable or a file with settings is wrong.
        case configuration
        /// The store does not let this key do it, or has no such bucket.
        case refused
        /// Another object has the key, and none was to be replaced.
        case taken
        /// The store cannot be reached or does not do it, also after several tries.
        case unavailable
        /// ``S3Client/cancel()``.
        case cancelled
    }

    package let kind: Kind
    /// One sentence: the error; one sentence: the remedy, which may be empty.
    package let message: String, hint: String

    package init(_ kind: Kind, _ message: String, hint: String = "") {
        (self.kind, self.message, self.hint) = (kind, message, hint)
    }
}
