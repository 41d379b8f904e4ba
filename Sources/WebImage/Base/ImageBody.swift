internal import Glibc
internal import Threading

/// The body of a response: in memory, or beyond a limit in an unnamed file, which the cache publishes without a copy. Filled once, then
/// read-only.
public final class ImageBody: Sendable {
    private struct Storage {
        /// Of a body that was made of them.
        var bytes: [UInt8] = []
        /// Of a body that arrives.
        var block: BodyBlock?
        var spool: BodySpool?
        var count = 0

        /// Makes room for so many bytes in memory.
        mutating func reserve(_ count: Int) {
            guard count > block?.capacity ?? 0 else { return }
            let larger = BodyBlocks.shared.take(count)
            if let block {
                larger.start.copyMemory(from: block.start, byteCount: self.count)
                BodyBlocks.shared.giveBack(block)
            }
            block = larger
        }

        mutating func giveBack() {
            if let block { BodyBlocks.shared.giveBack(block) }
            block = nil
        }
    }

    private let storage: Locked<Storage>
    private let memoryLimit: Int
    private let place: BodySpool.Place?

    /// An empty body.
    /// - Parameters:
    ///   - memoryLimit: bytes kept in memory before the body moves to a file, 1 MiB by default.
    ///   - spool: opens the unnamed file (`DiskCache.openTemporaryFile`), which the caller of ``append(_:)`` then writes; nil keeps the
    ///     body in memory.
    package convenience init(memoryLimit: Int = 1 << 20, spool: (@Sendable () throws(WebImageError) -> Int32)? = nil) {
        self.init(memoryLimit: memoryLimit, place: spool.map { BodySpool.Place(open: $0) })
    }

    init(memoryLimit: Int, place: BodySpool.Place?) {
        storage = Locked(Storage())
        self.memoryLimit = memoryLimit
        self.place = place
    }

    /// A body from bytes in memory.
    public init(_ bytes: [UInt8]) {
        storage = Locked(Storage(bytes: bytes, count: bytes.count))
        memoryLimit = .max
        place = nil
    }

    deinit { storage.withLock { $0.giveBack() } }

    /// Length in bytes.
    public var count: Int { storage.withLock { $0.count } }

    /// Descriptor of the unnamed file, nil while the body is in memory. Owned by the body: duplicate it to keep it.
    package var fileDescriptor: Int32? { storage.withLock { $0.spool }?.fileDescriptor }

    /// Whether it accepts no more bytes; if so, `hasRoom` is called once when it does again, on any thread.
    func isFull(_ hasRoom: @escaping @Sendable () -> Void) -> Bool {
        storage.withLock { $0.spool }?.isFull(hasRoom) ?? false
    }

    /// Returns when all appended bytes are written.
    /// - Throws: `localFault` if a write failed.
    nonisolated(nonsending) func finish() async throws(WebImageError) {
        if let spool = storage.withLock({ $0.spool }) { try await spool.finish() }
    }

    /// Reserves memory for an announced length, to avoid copies while bytes arrive.
    package func reserve(_ count: Int) {
        storage.withLock { $0.reserve(min(count, memoryLimit)) }
    }

    /// Appends bytes; beyond the memory limit everything moves to the unnamed file.
    /// - Throws: `localFault` if the file cannot be created or written; other threads' errors surface in the next call or in ``finish()``.
    package func append(_ new: UnsafeRawBufferPointer) throws(WebImageError) {
        // No I/O under the lock.
        let spool = storage.withLock { storage -> BodySpool? in
            let (before, count) = (storage.count, storage.count + new.count)
            if let spool = storage.spool {
                storage.count = count
                return spool
            }
            guard count > memoryLimit, let place else {
                if count > storage.block?.capacity ?? 0 { storage.reserve(max(count, 2 * before)) }
                if let block = storage.block, let source = new.baseAddress {
                    (block.start + before).copyMemory(from: source, byteCount: new.count)
                }
                storage.count = count
                return nil
            }
            // What has arrived is written from where it is.
            let spool = BodySpool(place, first: storage.block.map { FilledBlock($0, count: before) })
            (storage.spool, storage.block, storage.count) = (spool, nil, count)
            return spool
        }
        try spool?.append(new)
    }

    /// Calls `body` with all bytes; a file is mapped for the duration of the call.
    /// - Throws: `localFault` if the file cannot be mapped, and errors of `body`.
    public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws(WebImageError) -> Result
    ) throws(WebImageError) -> Result {
        // No lock while `body` runs: bytes are only read once they are complete.
        let (bytes, block, spool, count) = storage.withLock { ($0.bytes, $0.block, $0.spool, $0.count) }
        if let block {
            defer { withExtendedLifetime(self) {} }
            return try body(UnsafeRawBufferPointer(start: block.start, count: count))
        }
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

package func errnoText(_ code: Int32 = errno) -> String {
    String(cString: strerror(code))
}
