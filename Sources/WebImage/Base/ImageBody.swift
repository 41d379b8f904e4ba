internal import Glibc
internal import Threading

/// The bytes of one response: in memory up to a limit, in an unnamed temporary file past it, which the cache can publish without
/// copying. Filled by one writer, then only read.
public final class ImageBody: Sendable {
    private struct Storage {
        var bytes: [UInt8] = []
        var spool: BodySpool?
        var count = 0
    }

    private let storage: Locked<Storage>
    private let memoryLimit: Int
    private let place: BodySpool.Place?

    /// An empty body.
    /// - Parameters:
    ///   - memoryLimit: bytes kept in memory before the body moves to a file, 1 MiB by default.
    ///   - spool: opens the unnamed file (`DiskCache.openTemporaryFile`), which is then written by whoever appends; without it the body
    ///     stays in memory.
    package convenience init(memoryLimit: Int = 1 << 20, spool: (@Sendable () throws(WebImageError) -> Int32)? = nil) {
        self.init(memoryLimit: memoryLimit, place: spool.map { BodySpool.Place(open: $0) })
    }

    /// The same with a file that other threads write.
    init(memoryLimit: Int, place: BodySpool.Place?) {
        storage = Locked(Storage())
        self.memoryLimit = memoryLimit
        self.place = place
    }

    /// A body of bytes at hand.
    public init(_ bytes: [UInt8]) {
        storage = Locked(Storage(bytes: bytes, count: bytes.count))
        memoryLimit = .max
        place = nil
    }

    /// Length in bytes.
    public var count: Int { storage.withLock { $0.count } }

    /// The descriptor of the unnamed file, nil while the body is in memory. It stays the body's: duplicate it to keep it.
    package var fileDescriptor: Int32? { storage.withLock { $0.spool }?.fileDescriptor }

    /// Whether it takes no more bytes now; then `hasRoom` is called once when it does, on any thread.
    func isFull(_ hasRoom: @escaping @Sendable () -> Void) -> Bool {
        storage.withLock { $0.spool }?.isFull(hasRoom) ?? false
    }

    /// Returns when all bytes that were appended are where they are read from.
    /// - Throws: `localFault` where they could not be written.
    nonisolated(nonsending) func finish() async throws(WebImageError) {
        if let spool = storage.withLock({ $0.spool }) { try await spool.finish() }
    }

    /// Makes room for an announced length, so that the bytes are not copied while they come.
    package func reserve(_ count: Int) {
        storage.withLock { $0.bytes.reserveCapacity(min(count, memoryLimit)) }
    }

    /// Adds bytes at the end; past the memory limit everything moves to the unnamed file.
    /// - Throws: `localFault` where the file cannot be made or written; of what other threads write the next call tells, or ``finish()``.
    package func append(_ new: UnsafeRawBufferPointer) throws(WebImageError) {
        // Nothing but memory under the lock.
        let (spool, first) = storage.withLock { storage -> (BodySpool?, [UInt8]) in
            storage.count += new.count
            if let spool = storage.spool { return (spool, []) }
            guard storage.count > memoryLimit, let place else {
                storage.bytes.append(contentsOf: new)
                return (nil, [])
            }
            defer { storage.bytes = [] }
            let spool = BodySpool(place)
            storage.spool = spool
            return (spool, storage.bytes)
        }
        guard let spool else { return }
        try spool.append(first)
        try spool.append(Array(new))
    }

    /// Runs `body` with all bytes; a file is mapped for the time of the call.
    /// - Throws: `localFault` where the file cannot be mapped, and what `body` throws.
    public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws(WebImageError) -> Result
    ) throws(WebImageError) -> Result {
        // The lock is not held while `body` runs: a body is only read once it is complete.
        let (bytes, spool, count) = storage.withLock { ($0.bytes, $0.spool, $0.count) }
        guard let file = spool?.fileDescriptor else {
            return try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in try body(bytes) }
        }
        guard let address = mmap(nil, count, PROT_READ, MAP_PRIVATE, file, 0), address != MAP_FAILED else {
            throw WebImageError(.localFault, "cannot map a downloaded file: \(errnoText())", underlyingCode: errno)
        }
        defer {
            munmap(address, count)
            withExtendedLifetime(spool) {}
        }
        return try body(UnsafeRawBufferPointer(start: address, count: count))
    }
}

/// The text of the current `errno`.
package func errnoText(_ code: Int32 = errno) -> String {
    String(cString: strerror(code))
}
