/// A ``SHA256`` that closures can share. Fed by one caller at a time.
package final class SHA256Hasher {
    private var hash: SHA256? = SHA256()

    package init() {}

    /// Adds bytes.
    package func update(_ bytes: UnsafeRawBufferPointer) { hash?.update(bytes) }

    /// The digest of everything added, as 64 hex digits. Ends the hasher: a second call answers with nothing.
    package func finishedHex() -> String { hash.take()?.finalize().hex ?? "" }
}
