/// A ``SHA256`` that closures can share. One caller at a time.
package final class SHA256Hasher {
    private var hash: SHA256? = SHA256()

    package init() {}

    package func update(_ bytes: UnsafeRawBufferPointer) { hash?.update(bytes) }

    /// The digest as 64 hex digits. Ends the hasher: later calls return an empty string.
    package func finishedHex() -> String { hash.take()?.finalize().hex ?? "" }
}
