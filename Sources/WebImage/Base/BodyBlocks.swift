internal import Threading

/// Memory for the bytes of one body.
struct BodyBlock: Sendable {
    fileprivate let memory: SendablePointer
    let capacity: Int

    /// Used by the body that has taken the block, and by nobody else until it is given back.
    var start: UnsafeMutableRawPointer { memory.pointer }
}

/// A block, and how many bytes of it are filled.
struct FilledBlock: Sendable {
    let block: BodyBlock
    private(set) var count = 0

    var room: Int { block.capacity - count }

    /// Valid until the block is given back.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: block.start, count: count) }

    init(_ block: BodyBlock, count: Int = 0) {
        self.block = block
        self.count = count
    }

    mutating func append(_ new: UnsafeRawBufferPointer) {
        guard let source = new.baseAddress else { return }
        (block.start + count).copyMemory(from: source, byteCount: new.count)
        count += new.count
    }
}

/// Blocks of memory that one body after the other uses. The block given back last is the next one taken, which the processor's caches still
/// have; malloc(3) searches lists for blocks of this size, and splits and joins them.
final class BodyBlocks: Sendable {
    /// Those of the process.
    static let shared = BodyBlocks()

    /// Sizes are powers of two from 16 KiB to 1 MiB; larger blocks are not kept.
    private static let (least, sizes) = (16 << 10, 7)
    /// Bytes that are kept for later bodies.
    private static let mostKept = 4 << 20

    private struct State {
        var free = [[BodyBlock]](repeating: [], count: BodyBlocks.sizes)
        var kept = 0
    }

    private let state = Locked(State())

    /// Takes a block of at least `count` bytes.
    func take(_ count: Int) -> BodyBlock {
        guard let size = Self.size(count) else { return Self.make(count) }
        let capacity = Self.least << size
        let known = state.withLock { state in
            let block = state.free[size].popLast()
            if block != nil { state.kept -= capacity }
            return block
        }
        return known ?? Self.make(capacity)
    }

    func giveBack(_ block: BodyBlock) {
        if let size = Self.size(block.capacity), Self.least << size == block.capacity {
            let isKept = state.withLock { state in
                guard state.kept + block.capacity <= Self.mostKept else { return false }
                state.free[size].append(block)
                state.kept += block.capacity
                return true
            }
            if isKept { return }
        }
        block.start.deallocate()
    }

    private static func make(_ capacity: Int) -> BodyBlock {
        BodyBlock(memory: SendablePointer(.allocate(byteCount: capacity, alignment: 64)), capacity: capacity)
    }

    /// The index of the size that has room for so many bytes; nil: none.
    private static func size(_ count: Int) -> Int? {
        let size = count <= least ? 0 : Int.bitWidth - ((count - 1) / least).leadingZeroBitCount
        return size < sizes ? size : nil
    }
}
