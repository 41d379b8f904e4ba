internal import CLinux
internal import Glibc
internal import Threading

/// The bytes of one response: in memory up to a limit, in an unnamed temporary file past it, which the cache can publish without
/// copying. Filled by one writer, then only read.
public final class ImageBody: Sendable {
    private struct Storage {
        var bytes: [UInt8] = []
        var file: Int32 = -1
        var count = 0
    }

    private let storage: Locked<Storage>
    private let memoryLimit: Int
    private let spool: (@Sendable () throws(WebImageError) -> Int32)?

    /// An empty body.
    /// - Parameters:
    ///   - memoryLimit: bytes kept in memory before the body moves to a file, 1 MiB by default.
    ///   - spool: opens the unnamed file (`DiskCache.openTemporaryFile`); without it the body stays in memory.
    package init(memoryLimit: Int = 1 << 20, spool: (@Sendable () throws(WebImageError) -> Int32)? = nil) {
        storage = Locked(Storage())
        self.memoryLimit = memoryLimit
        self.spool = spool
    }

    /// A body of bytes at hand.
    public init(_ bytes: [UInt8]) {
        storage = Locked(Storage(bytes: bytes, count: bytes.count))
        memoryLimit = .max
        spool = nil
    }

    deinit {
        let file = storage.withLock { $0.file }
        if file >= 0 { close(file) }
    }

    /// Length in bytes.
    public var count: Int { storage.withLock { $0.count } }

    /// The descriptor of the unnamed file, nil while the body is in memory. It stays the body's: duplicate it to keep it.
    package var fileDescriptor: Int32? {
        storage.withLock { $0.file >= 0 ? $0.file : nil }
    }

    /// Makes room for an announced length, so that the bytes are not copied while they come.
    package func reserve(_ count: Int) {
        storage.withLock { $0.bytes.reserveCapacity(min(count, memoryLimit)) }
    }

    /// Adds bytes at the end; past the memory limit everything moves to the unnamed file.
    /// - Throws: `localFault` where the file cannot be made or written.
    package func append(_ new: UnsafeRawBufferPointer) throws(WebImageError) {
        try storage.withLock { storage throws(WebImageError) in
            if storage.file < 0, storage.count + new.count > memoryLimit, let spool {
                storage.file = try spool()
                try storage.bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                    try Self.write(bytes, to: storage.file)
                }
                storage.bytes = []
            }
            if storage.file >= 0 {
                try Self.write(new, to: storage.file)
            } else {
                storage.bytes.append(contentsOf: new)
            }
            storage.count += new.count
        }
    }

    /// Runs `body` with all bytes; a file is mapped for the time of the call.
    /// - Throws: `localFault` where the file cannot be mapped, and what `body` throws.
    public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws(WebImageError) -> Result
    ) throws(WebImageError) -> Result {
        // The lock is not held while `body` runs: a body is only read once it is complete.
        let (bytes, file, count) = storage.withLock { ($0.bytes, $0.file, $0.count) }
        guard file >= 0 else {
            return try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in try body(bytes) }
        }
        guard let address = mmap(nil, count, PROT_READ, MAP_PRIVATE, file, 0), address != MAP_FAILED else {
            throw WebImageError(.localFault, "cannot map a downloaded file: \(errnoText())", underlyingCode: errno)
        }
        defer { munmap(address, count) }
        return try body(UnsafeRawBufferPointer(start: address, count: count))
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to file: Int32) throws(WebImageError) {
        var rest = bytes
        while !rest.isEmpty {
            let written = Glibc.write(file, rest.baseAddress, rest.count)
            if written < 0 {
                if errno == EINTR { continue }
                throw WebImageError(.localFault, "cannot write a temporary file: \(errnoText())", underlyingCode: errno)
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        }
    }
}

/// The text of the current `errno`.
package func errnoText(_ code: Int32 = errno) -> String {
    String(cString: strerror(code))
}
