/// A verified image in memory: its original encoded bytes, and the result of the check.
public struct MemoryImage: Sendable, Equatable {
    /// The encoded bytes.
    public let bytes: [UInt8]
    /// Result of the check.
    public let info: ImageInfo
    /// SHA-256 of the bytes, 32 of them; nil if it was not computed.
    public var sha256: [UInt8]? { digest?.bytes }

    let digest: Digest?

    init(bytes: [UInt8], info: ImageInfo, digest: Digest?) {
        self.bytes = bytes
        self.info = info
        self.digest = digest
    }

    /// Bytes counted towards ``MemoryCache/maxMemoryCost``.
    public var cost: Int { bytes.count }
}
