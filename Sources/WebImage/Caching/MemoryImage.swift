/// A verified image in memory: its encoded bytes, as they came, and what the check found out about them.
public struct MemoryImage: Sendable, Equatable {
    /// The encoded bytes.
    public let bytes: [UInt8]
    /// What the check found out.
    public let info: ImageInfo
    /// SHA-256 of the bytes, 32 of them; nil where none was computed.
    public var sha256: [UInt8]? { digest?.bytes }

    let digest: Digest?

    init(bytes: [UInt8], info: ImageInfo, digest: Digest?) {
        self.bytes = bytes
        self.info = info
        self.digest = digest
    }

    /// Bytes it takes of ``MemoryCache/maxMemoryCost``.
    public var cost: Int { bytes.count }
}
