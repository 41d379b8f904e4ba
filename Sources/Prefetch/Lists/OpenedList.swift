internal import Glibc
internal import WebImage

/// An open regular file with the lines of a list, which several read at places of their own, whatever becomes of its name.
final class OpenedList: Sendable {
    private static let pieceSize = 1 << 20

    let descriptor: Int32

    /// Takes over the descriptor.
    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    var mark: FileMark? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return FileMark(status)
    }

    /// SHA-256 of its first bytes; nil if it is shorter or cannot be read.
    func digest(upTo end: Int) -> String? { digest(of: 0..<end)?.hex }

    /// The same of any range.
    func digest(of range: Range<Int>) -> Digest? {
        var hash = SHA256()
        guard forEachPiece(range, { hash.update($0) }) else { return nil }
        let copy = hash
        return copy.finalize()
    }

    /// Nil if they are not there, or cannot be read.
    func bytes(_ range: Range<Int>) -> [UInt8]? {
        var bytes: [UInt8] = []
        return forEachPiece(range) { bytes += $0 } ? bytes : nil
    }

    /// Whether it has the same bytes as another, in a range.
    func hasBytes(of other: OpenedList, _ range: Range<Int>) -> Bool {
        var place = range.lowerBound
        var isSame = true
        var buffer = [UInt8](repeating: 0, count: Self.pieceSize)
        let isWhole = forEachPiece(range) { bytes in
            let count = buffer.withUnsafeMutableBytes { pread(other.descriptor, $0.baseAddress, bytes.count, place) }
            isSame =
                isSame && count == bytes.count
                && buffer.withUnsafeBytes { memcmp($0.baseAddress!, bytes.baseAddress!, bytes.count) } == 0
            place += bytes.count
        }
        return isWhole && isSame
    }

    /// False if it has fewer bytes, or they cannot be read.
    private func forEachPiece(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) -> Void) -> Bool {
        var buffer = [UInt8](repeating: 0, count: min(Self.pieceSize, max(1, range.count)))
        var place = range.lowerBound
        while place < range.upperBound {
            let most = min(buffer.count, range.upperBound - place)
            let count = buffer.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, most, place) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            buffer.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            place += count
        }
        return true
    }
}
