internal import CZstd

/// Unpacks zstd data in pieces (RFC 8878). Frames that follow one another are one file, and skippable ones are left out, as zstd(1) does.
final class ZstdUnpacker: Unpacker {
    /// The first bytes of a frame.
    static let magic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]
    private static let outputSize = 1 << 18
    /// The largest window, 128 MiB, that zstd(1) takes by default: a file cannot ask for more memory.
    private static let mostWindow: Int32 = 27

    private let stream: OpaquePointer
    private(set) var isBetweenFiles = true
    private(set) var hasMore = false
    private(set) var reason = ""

    private init(_ stream: OpaquePointer) { self.stream = stream }

    /// - Throws: `inputOutput` if there is no memory.
    static func make(for path: String) throws(PrefetchError) -> ZstdUnpacker {
        guard let stream = ZSTD_createDCtx() else {
            throw PrefetchError(.inputOutput, "cannot read \(path): no memory to unpack it")
        }
        ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, mostWindow)
        return ZstdUnpacker(stream)
    }

    deinit { ZSTD_freeDCtx(stream) }

    func next(_ bytes: inout [UInt8]) -> ArraySlice<UInt8>? {
        var output = [UInt8](repeating: 0, count: Self.outputSize)
        var (taken, given, code) = (0, 0, 0)
        bytes.withUnsafeBytes { source in
            output.withUnsafeMutableBytes { space in
                var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
                var result = ZSTD_outBuffer(dst: space.baseAddress, size: space.count, pos: 0)
                code = ZSTD_decompressStream(stream, &result, &input)
                (taken, given) = (input.pos, result.pos)
            }
        }
        guard ZSTD_isError(code) == 0 else {
            reason = String(cString: ZSTD_getErrorName(code))
            return nil
        }
        bytes.removeFirst(taken)
        isBetweenFiles = code == 0
        hasMore = code != 0 && given == Self.outputSize
        return output[..<given]
    }
}
