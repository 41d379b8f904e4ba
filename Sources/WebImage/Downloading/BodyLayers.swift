internal import CZlib

/// The codings of a body that curl is not to undo, because it refuses one of them: what is really there comes off, in whatever order it was put
/// on, and as the bytes arrive.
final class BodyLayers {
    private enum Layer {
        case frames(AWSChunks)
        /// gzip or zlib; it begins with the first bytes.
        case packed(Unpacking)
    }

    /// From the outside to the inside.
    private var layers: [Layer] = []
    /// What is wrong with the body.
    private(set) var failure: String?

    /// Nil if there is nothing that could come off.
    init?(_ coding: ContentCoding) {
        if coding.mayBeFramed { layers.append(.frames(AWSChunks())) }
        for _ in 0..<coding.packings { layers.append(.packed(Unpacking())) }
        // The frames of an upload that was packed by somebody on the way.
        if coding.mayBeFramed, coding.packings > 0 { layers.append(.frames(AWSChunks())) }
        if layers.isEmpty { return nil }
    }

    /// Passes the bytes inside of the codings on.
    /// * `take`: returns whether it wants more.
    /// - Returns: whether more is wanted; nil: a coding is broken.
    func read(_ bytes: UnsafeRawBufferPointer, take: (UnsafeRawBufferPointer) -> Bool) -> Bool? {
        let isWanted = read(bytes, from: 0, take: take)
        return failure == nil ? isWanted : nil
    }

    private func read(
        _ bytes: UnsafeRawBufferPointer, from index: Int, take: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool {
        guard index < layers.count else { return take(bytes) }
        func next(_ part: UnsafeRawBufferPointer) -> Bool { read(part, from: index + 1, take: take) }
        let isWanted: Bool?
        switch layers[index] {
        case .frames(var chunks):
            isWanted = chunks.read(bytes, take: next)
            layers[index] = .frames(chunks)
            if isWanted == nil { failure = failure ?? "a frame of its aws-chunked coding is broken" }
        case .packed(let unpacking):
            isWanted = unpacking.read(bytes, take: next)
            if isWanted == nil { failure = failure ?? "its gzip coding is broken" }
        }
        return isWanted ?? false
    }
}

/// A stream of gzip (RFC 1952) or zlib (RFC 1950), or plain bytes: no image begins as either of the two.
private final class Unpacking {
    private enum State {
        case start
        case plain
        case stream(UnsafeMutablePointer<z_stream>)
        case end
    }

    private static let bufferSize = 16 << 10
    private var state = State.start
    /// The first byte, if it came alone.
    private var first: [UInt8] = []

    deinit { close() }

    func read(_ bytes: UnsafeRawBufferPointer, take: (UnsafeRawBufferPointer) -> Bool) -> Bool? {
        switch state {
        case .plain: return take(bytes)
        // As by curl, what follows is ignored.
        case .end: return true
        case .stream(let stream): return unpack(bytes, stream, take: take)
        case .start:
            let begun = first + bytes.prefix(2 - first.count)
            guard begun.count == 2 else {
                first = begun
                return true
            }
            if Self.isPacked(begun[0], begun[1]) {
                guard let stream = Self.open() else { return nil }
                state = .stream(stream)
            } else {
                state = .plain
            }
            let before = first
            guard before.isEmpty || before.withUnsafeBytes({ read($0, take: take) }) == true else { return nil }
            return read(bytes, take: take)
        }
    }

    private static func isPacked(_ first: UInt8, _ second: UInt8) -> Bool {
        first == 0x1F && second == 0x8B || first == 0x78 && (Int(first) << 8 + Int(second)) % 31 == 0
    }

    private static func open() -> UnsafeMutablePointer<z_stream>? {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // The largest window, and 32: gzip or zlib.
        let size = Int32(MemoryLayout<z_stream>.size)
        guard inflateInit2_(stream, 15 + 32, ZLIB_VERSION, size) == Z_OK else {
            stream.deallocate()
            return nil
        }
        return stream
    }

    private func close() {
        guard case .stream(let stream) = state else { return }
        inflateEnd(stream)
        stream.deallocate()
        state = .end
    }

    private func unpack(
        _ bytes: UnsafeRawBufferPointer, _ stream: UnsafeMutablePointer<z_stream>,
        take: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool? {
        guard let start = bytes.baseAddress else { return true }
        // zlib does not write to it.
        let input = UnsafeMutableRawPointer(mutating: start).assumingMemoryBound(to: UInt8.self)
        stream.pointee.next_in = input
        stream.pointee.avail_in = UInt32(bytes.count)
        return withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 1) { buffer in
            while true {
                stream.pointee.next_out = buffer.baseAddress!.assumingMemoryBound(to: UInt8.self)
                stream.pointee.avail_out = UInt32(buffer.count)
                let status = inflate(stream, Z_NO_FLUSH)
                let out = UnsafeRawBufferPointer(rebasing: buffer[..<(buffer.count - Int(stream.pointee.avail_out))])
                guard status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR else { return nil }
                guard out.isEmpty || take(out) else { return false }
                if status == Z_STREAM_END {
                    close()
                    return true
                }
                // It is out of input as soon as there is room left.
                if stream.pointee.avail_out > 0 { return true }
            }
        }
    }
}
