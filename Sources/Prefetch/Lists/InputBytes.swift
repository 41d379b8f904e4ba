internal import Glibc

/// The bytes of a file or a pipe in pieces, uncompressed if they begin as gzip (RFC 1952) or zstd (RFC 8878).
struct InputBytes: ~Copyable {
    private static let pieceSize = 1 << 17

    /// What came.
    enum Piece {
        case bytes(ArraySlice<UInt8>)
        /// Nothing within the limit.
        case nothing
        case end
    }

    /// What it is called in messages, and in a command that the user can type.
    let path: String
    private let file: Int32
    private var unpacker: (any Unpacker)?
    /// Bytes that were read and not returned.
    private var rest: [UInt8] = []
    private var isKnown = false
    private var hasEnded = false
    /// Bytes of the file that were read.
    private(set) var place = 0

    /// * `waiting`: see ``ListFile/open(_:waiting:)``.
    /// - Throws: `notFound`, `unreadableList` with the reason.
    init(path: String, waiting: () -> Void = {}) throws(PrefetchError) {
        self.path = path
        file = try ListFile.open(path, waiting: waiting)
    }

    /// Takes over a descriptor.
    init(_ file: Int32, path: String) { (self.file, self.path) = (file, path) }

    deinit { close(file) }

    /// Known after the first read.
    var isPacked: Bool { unpacker != nil }

    /// Its length if it is a regular file.
    var size: Int? {
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(status.st_size)
    }

    /// The file, which has its bytes as they are.
    func opened() -> OpenedList { OpenedList(fcntl(file, F_DUPFD_CLOEXEC, 0)) }

    /// Waits for as long as it takes; empty at the end.
    /// - Throws: `unreadableList` if it cannot be read, or if the compressed data is cut or damaged.
    mutating func next() throws(PrefetchError) -> ArraySlice<UInt8> {
        while true {
            switch try next(waitLimit: -1) {
            case .bytes(let bytes): return bytes
            case .nothing: continue
            case .end: return []
            }
        }
    }

    /// * `waitLimit`: milliseconds for which it waits for bytes of a pipe; -1: for as long as it takes.
    mutating func next(waitLimit: Int32) throws(PrefetchError) -> Piece {
        while true {
            if isKnown, !rest.isEmpty || unpacker?.hasMore == true {
                guard let unpacker else {
                    defer { rest = [] }
                    return .bytes(rest[...])
                }
                guard let bytes = unpacker.next(&rest) else { throw damaged(unpacker.reason) }
                if !bytes.isEmpty { return .bytes(bytes) }
                continue
            }
            if hasEnded {
                guard isKnown || rest.isEmpty else {
                    isKnown = true
                    continue
                }
                if let unpacker, !unpacker.isBetweenFiles { throw damaged("unexpected end of file") }
                return .end
            }
            guard try read(waitLimit) else { return .nothing }
            if !isKnown, rest.count > 3 || hasEnded {
                isKnown = true
                if rest.starts(with: [0x1F, 0x8B]) {
                    unpacker = try Inflater.make(for: path)
                } else if rest.starts(with: ZstdUnpacker.magic) {
                    unpacker = try ZstdUnpacker.make(for: path)
                }
            }
        }
    }

    /// False if nothing came.
    private mutating func read(_ waitLimit: Int32) throws(PrefetchError) -> Bool {
        var entry = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, waitLimit) > 0 else { return false }
        var buffer = [UInt8](repeating: 0, count: Self.pieceSize)
        let count = buffer.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR || errno == EAGAIN { return false }
        guard count >= 0 else {
            throw PrefetchError(
                .unreadableList, "cannot read \(ListFile.name(of: path)): \(String(cString: strerror(errno)))",
                hint: "give a text file with one URL a line, or - for standard input")
        }
        if count == 0 { hasEnded = true }
        place += count
        buffer.removeLast(buffer.count - count)
        if rest.isEmpty { rest = buffer } else { rest += buffer }
        return true
    }

    private func damaged(_ reason: String) -> PrefetchError {
        PrefetchError(
            .unreadableList, "cannot read \(ListFile.name(of: path)): \(reason)",
            hint:
                "it is damaged or not whole: \(unpacker is ZstdUnpacker ? "zstd" : "gzip") -t \(ListFile.isNamed(path) ? path : "FILE")"
        )
    }
}
