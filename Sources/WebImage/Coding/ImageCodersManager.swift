internal import Threading

/// A coder that a program adds for formats of its own, or in place of a built-in one (SDImageCoder). Called on any thread.
public protocol ImageCoding: AnyObject, Sendable {
    /// Whether it decodes these bytes, of which only the first may have arrived.
    func canDecode(_ bytes: UnsafeRawBufferPointer) -> Bool

    /// Decodes the complete bytes of an image.
    /// - Throws: `badImageData` if they are not an image.
    func decodedImage(
        with bytes: UnsafeRawBufferPointer, options: ImageDecodeOptions
    ) throws(WebImageError) -> Bitmap

    /// Whether it encodes a format; nil: that of an image without a known one.
    func canEncode(to format: ImageFormat?) -> Bool

    /// Encodes an image.
    /// - Throws: `badImageData` if the image cannot be written.
    func encodedData(with image: Bitmap, format: ImageFormat?) throws(WebImageError) -> [UInt8]
}

/// Coders of a program, of which the one added last is asked first (SDImageCodersManager). Thread-safe.
public final class ImageCodersManager: Sendable {
    private let state: Locked<[any ImageCoding]>

    /// Creates a manager of these coders.
    public init(_ coders: [any ImageCoding] = []) { state = Locked(coders) }

    /// In the order in which they were added.
    public var coders: [any ImageCoding] { state.withLock { $0 } }

    /// Adds a coder, which is asked before the others.
    public func addCoder(_ coder: any ImageCoding) { state.withLock { $0.append(coder) } }

    /// Removes a coder.
    public func removeCoder(_ coder: any ImageCoding) { state.withLock { $0.removeAll { $0 === coder } } }

    func coder(toDecode bytes: UnsafeRawBufferPointer) -> (any ImageCoding)? {
        coders.last { $0.canDecode(bytes) }
    }

    func coder(toEncode format: ImageFormat?) -> (any ImageCoding)? { coders.last { $0.canEncode(to: format) } }
}
