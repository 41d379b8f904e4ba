internal import CZlib

/// Unpacks data in pieces.
protocol Unpacker: AnyObject {
    /// Whether no file has begun that has not ended.
    var isBetweenFiles: Bool { get }
    /// Whether there is more of what it was given.
    var hasMore: Bool { get }
    /// Why the data is refused.
    var reason: String { get }

    /// Unpacks the beginning of some bytes, and removes it from them. Empty if they give nothing yet; nil if they are damaged.
    func next(_ bytes: inout [UInt8]) -> ArraySlice<UInt8>?
}

/// Unpacks gzip data in pieces. Concatenated files are one (RFC 1952 section 2.2); what follows them and is none is left out, as gzip(1) does.
final class Inflater: Unpacker {
    private static let outputSize = 1 << 18
    private static let gzipWindow: Int32 = 15 + 16

    private var stream = z_stream()
    private(set) var isBetweenFiles = true
    /// A file has a trailer behind what gives its last bytes.
    var hasMore: Bool { false }
    private var isBehindLast = false
    private(set) var reason = ""

    private init() {}

    /// - Throws: `inputOutput` if there is no memory.
    static func make(for path: String) throws(PrefetchError) -> Inflater {
        let inflater = Inflater()
        let code = inflateInit2_(
            &inflater.stream, gzipWindow, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard code == Z_OK else {
            throw PrefetchError(.inputOutput, "cannot read \(path): no memory to unpack it")
        }
        return inflater
    }

    deinit { inflateEnd(&stream) }

    func next(_ bytes: inout [UInt8]) -> ArraySlice<UInt8>? {
        if isBetweenFiles, !isBehindLast, stream.total_in > 0 || stream.total_out > 0 { beginFile(bytes) }
        guard !isBehindLast else {
            bytes = []
            return []
        }
        isBetweenFiles = false
        var output = [UInt8](repeating: 0, count: Self.outputSize)
        let available = bytes.count
        var code: Int32 = Z_OK
        bytes.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { space in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(available)
                stream.next_out = space.baseAddress
                stream.avail_out = UInt32(Self.outputSize)
                code = inflate(&stream, Z_NO_FLUSH)
            }
        }
        bytes.removeFirst(available - Int(stream.avail_in))
        guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else {
            reason = stream.msg.map { String(cString: $0) } ?? "it cannot be unpacked"
            return nil
        }
        if code == Z_STREAM_END { isBetweenFiles = true }
        return output[..<(Self.outputSize - Int(stream.avail_out))]
    }

    /// Another file follows, or something that is none.
    private func beginFile(_ bytes: [UInt8]) {
        guard bytes.first == 0x1F, bytes.count < 2 || bytes[1] == 0x8B else {
            isBehindLast = true
            return
        }
        inflateReset(&stream)
    }
}
