internal import Glibc
internal import Threading

/// The unnamed file of a body that exceeds the memory limit. A stalled disk must not block the downloader's thread and with it every
/// transfer. A thread of the pool therefore writes the bytes, and callers wait while more than ``maxPending`` bytes are pending. Write
/// errors are reported by the next ``append(_:)`` and by ``finish()``.
final class BodySpool: Sendable {
    /// How to open the file, and where the blocking calls run.
    struct Place: Sendable {
        var open: @Sendable () throws(WebImageError) -> Int32
        /// Nil: the caller of ``BodySpool/append(_:)`` writes, and may block.
        var pool: ThreadPool?
        var calls: FileCalls?
    }

    /// Pending bytes at which the spool is full.
    static let maxPending = 1 << 20
    /// Bytes that are written by one call while the disk keeps up.
    private static let blockSize = 128 << 10

    private struct State {
        var file: Int32 = -1
        var blocks: [FilledBlock] = []
        var pending = 0
        var isWriting = false
        var error: WebImageError?
        var hasRoom: (@Sendable () -> Void)?
        var finishers: [UnsafeContinuation<Void, Never>] = []

        mutating func append(_ bytes: UnsafeRawBufferPointer) {
            pending += bytes.count
            if let last = blocks.indices.last, blocks[last].room >= bytes.count { return blocks[last].append(bytes) }
            var block = FilledBlock(BodyBlocks.shared.take(max(bytes.count, BodySpool.blockSize)))
            block.append(bytes)
            blocks.append(block)
        }
    }

    private let place: Place
    private let state: Locked<State>

    /// The file begins with `first`, which is given back once it is written.
    init(_ place: Place, first: FilledBlock?) {
        self.place = place
        state = Locked(State(blocks: first.map { [$0] } ?? [], pending: first?.count ?? 0))
    }

    deinit {
        let (file, blocks) = state.withLock { ($0.file, $0.blocks) }
        let pool = place.pool
        Self.giveBack(blocks)
        guard file >= 0 else { return }
        // The last close of an unnamed file frees its blocks, which may block on the disk.
        guard let pool else {
            close(file)
            return
        }
        Task(executorPreference: pool) { _ = close(file) }
    }

    /// The descriptor, owned by the spool; nil before the first write.
    var fileDescriptor: Int32? { state.withLock { $0.file >= 0 ? $0.file : nil } }

    /// Queues a copy of bytes for writing.
    /// - Throws: `localFault` if an earlier write failed.
    func append(_ bytes: UnsafeRawBufferPointer) throws(WebImageError) {
        let (error, isIdle) = state.withLock { state -> (WebImageError?, Bool) in
            if let error = state.error { return (error, false) }
            state.append(bytes)
            defer { state.isWriting = true }
            return (nil, !state.isWriting)
        }
        if let error { throw error }
        guard isIdle else { return }
        if let pool = place.pool {
            Task(executorPreference: pool) { self.writeAll() }
        } else {
            writeAll()
            if let error = state.withLock({ $0.error }) { throw error }
        }
    }

    /// Whether the spool is full; if so, `hasRoom` is called once when it no longer is, on any thread.
    func isFull(_ hasRoom: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard state.pending >= Self.maxPending else { return false }
            state.hasRoom = hasRoom
            return true
        }
    }

    /// Returns when all bytes are written.
    /// - Throws: `localFault` if a write failed.
    nonisolated(nonsending) func finish() async throws(WebImageError) {
        await withUnsafeContinuation { continuation in
            let isDone = state.withLock { state in
                if state.isWriting { state.finishers.append(continuation) }
                return !state.isWriting
            }
            if isDone { continuation.resume() }
        }
        if let error = state.withLock({ $0.error }) { throw error }
    }

    private func writeAll() {
        while true {
            let (blocks, file) = state.withLock { state in
                defer { state.blocks = [] }
                return (state.blocks, state.file)
            }
            guard !blocks.isEmpty else {
                let finishers = state.withLock { state -> [UnsafeContinuation<Void, Never>]? in
                    guard state.blocks.isEmpty else { return nil }
                    defer { state.finishers = [] }
                    state.isWriting = false
                    return state.finishers
                }
                guard let finishers else { continue }
                for finisher in finishers { finisher.resume() }
                return
            }
            var failure: WebImageError?
            do throws(WebImageError) { try write(blocks, to: file) } catch { failure = error }
            Self.giveBack(blocks)
            let hasRoom = state.withLock { state in
                state.pending -= blocks.reduce(0) { $0 + $1.count }
                if let failure {
                    state.error = failure
                    Self.giveBack(state.blocks)
                    state.blocks = []
                    state.pending = 0
                }
                guard state.pending < Self.maxPending else { return nil as (@Sendable () -> Void)? }
                defer { state.hasRoom = nil }
                return state.hasRoom
            }
            hasRoom?()
        }
    }

    private func write(_ blocks: [FilledBlock], to opened: Int32) throws(WebImageError) {
        var file = opened
        if file < 0 {
            file = try place.open()
            state.withLock { $0.file = file }
        }
        let call = place.calls?.begin()
        defer { if let call { place.calls?.end(call) } }
        for block in blocks {
            let code = OpenFile.write(block.bytes, to: file)
            guard code == 0 else {
                throw WebImageError(
                    .localFault, "cannot write a temporary file: \(errnoText(code))", underlyingCode: code)
            }
        }
    }

    private static func giveBack(_ blocks: [FilledBlock]) {
        for filled in blocks { BodyBlocks.shared.giveBack(filled.block) }
    }
}
