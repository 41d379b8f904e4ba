internal import CCrypto
internal import Threading

/// An incremental SHA-256 (libcrypto). Fed by one caller at a time.
package final class SHA256Hasher: Sendable {
    private let context: SendablePointer

    package init() {
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
        EVP_DigestInit_ex(context, EVP_sha256(), nil)
        self.context = SendablePointer(context)
    }

    deinit { EVP_MD_CTX_free(OpaquePointer(context.pointer)) }

    /// Adds bytes.
    package func update(_ bytes: UnsafeRawBufferPointer) {
        EVP_DigestUpdate(OpaquePointer(context.pointer), bytes.baseAddress, bytes.count)
    }

    /// The digest of everything added, as 64 hex digits. Ends the hasher.
    package func finishedHex() -> String {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(OpaquePointer(context.pointer), &digest, nil)
        return digest.reduce(into: "") { text, byte in
            text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
    }
}
