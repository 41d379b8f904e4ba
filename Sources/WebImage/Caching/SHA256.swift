internal import CCrypto
internal import Threading

package struct SHA256: ~Copyable {
    private let context: OpaquePointer

    package init() {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex2(context, Self.algorithm, nil) == 1 else {
            preconditionFailure("libcrypto has no memory for a digest")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
    }

    package consuming func finalize() -> Digest {
        var bytes = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &bytes, nil)
        return Digest(bytes)!
    }

    package static func hash(_ bytes: UnsafeRawBufferPointer) -> Digest {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { out in
            EVP_Digest(bytes.baseAddress, bytes.count, out.baseAddress, nil, algorithm, nil)
            return Digest(out)
        }
    }

    package static func hash(_ bytes: [UInt8]) -> Digest { bytes.withUnsafeBytes { hash($0) } }

    /// MD5 in lower-case hexadecimal, only for SDWebImage's file names. Nil if libcrypto lacks it (a FIPS build).
    package static func md5Hex(_ bytes: [UInt8]) -> String? {
        guard let algorithm = EVP_MD_fetch(nil, "MD5", nil) else { return nil }
        defer { EVP_MD_free(algorithm) }
        var out = [UInt8](repeating: 0, count: 16)
        guard EVP_Digest(bytes, bytes.count, &out, nil, algorithm, nil) == 1 else { return nil }
        return Digest.hex(out)
    }

    /// Fetched once: otherwise OpenSSL 3 looks the algorithm up by name, under a lock, for every digest (EVP_MD_fetch(3), "explicit
    /// fetching"). Sendable because the fetched object is constant.
    private static let fetched: SendablePointer = {
        guard let algorithm = EVP_MD_fetch(nil, "SHA256", nil) else { preconditionFailure("libcrypto has no SHA-256") }
        return SendablePointer(algorithm)
    }()

    private static var algorithm: OpaquePointer { OpaquePointer(fetched.pointer) }
}

extension ImageBody {
    /// SHA-256 of all bytes.
    /// - Throws: `localFault` if its file cannot be read.
    var digest: Digest {
        get throws(WebImageError) {
            try withUnsafeBytes { bytes throws(WebImageError) in SHA256.hash(bytes) }
        }
    }
}
