internal import CCrypto

package struct SHA256 {
    private var context = SHA256_CTX()

    package init() { SHA256_Init(&context) }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        SHA256_Update(&context, bytes.baseAddress, bytes.count)
    }

    package consuming func finalize() -> Digest {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { out in
            SHA256_Final(out.baseAddress, &context)
            return Digest(out)
        }
    }

    package static func hash(_ bytes: UnsafeRawBufferPointer) -> Digest {
        var digest = SHA256()
        digest.update(bytes)
        return digest.finalize()
    }

    package static func hash(_ bytes: [UInt8]) -> Digest { bytes.withUnsafeBytes { hash($0) } }

    /// MD5 in lower-case hexadecimal, for SDWebImage's file names. Nil if libcrypto lacks it (a FIPS build).
    package static func md5Hex(_ bytes: [UInt8]) -> String? {
        bytes.withUnsafeBytes { md5($0) }.map { Digest.hex($0) }
    }

    /// The 16 bytes of MD5, by which object stores check what they are given. Nil as of ``md5Hex(_:)``.
    package static func md5(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        guard let algorithm = EVP_MD_fetch(nil, "MD5", nil) else { return nil }
        defer { EVP_MD_free(algorithm) }
        var out = [UInt8](repeating: 0, count: 16)
        guard EVP_Digest(bytes.baseAddress, bytes.count, &out, nil, algorithm, nil) == 1 else { return nil }
        return out
    }
}

extension ImageBody {
    /// A copy of all bytes.
    /// - Throws: `localFault` if its file cannot be read.
    var bytes: [UInt8] {
        get throws(WebImageError) { try withUnsafeBytes { bytes throws(WebImageError) in Array(bytes) } }
    }

    /// SHA-256 of all bytes.
    /// - Throws: `localFault` if its file cannot be read.
    var digest: Digest {
        get throws(WebImageError) {
            try withUnsafeBytes { bytes throws(WebImageError) in SHA256.hash(bytes) }
        }
    }
}
