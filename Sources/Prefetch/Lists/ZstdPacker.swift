internal import CZstd

/// Packs bytes as one frame of zstd (RFC 8878).
final class ZstdPacker {
    private let stream: OpaquePointer
    private var output = [UInt8](repeating: 0, count: 1 << 17)

    /// Nil without memory. The fastest of the usual levels: lists of URLs shrink to a sixth with it.
    init?() {
        guard let stream = ZSTD_createCCtx() else { return nil }
        ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, 1)
        ZSTD_CCtx_setParameter(stream, ZSTD_c_checksumFlag, 1)
        self.stream = stream
    }

    deinit { ZSTD_freeCCtx(stream) }

    /// * `isLast`: whether these are the last bytes.
    /// * `write`: takes what is packed; false if it could not.
    /// - Returns: whether all of it was taken.
    func pack(_ bytes: UnsafeRawBufferPointer, isLast: Bool, _ write: ([UInt8]) -> Bool) -> Bool {
        var input = ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
        while true {
            var given = 0
            let rest = output.withUnsafeMutableBytes { space in
                var result = ZSTD_outBuffer(dst: space.baseAddress, size: space.count, pos: 0)
                defer { given = result.pos }
                return ZSTD_compressStream2(stream, &result, &input, isLast ? ZSTD_e_end : ZSTD_e_continue)
            }
            guard ZSTD_isError(rest) == 0, given == 0 || write(Array(output[..<given])) else { return false }
            if isLast ? rest == 0 : input.pos == input.size { return true }
        }
    }
}
