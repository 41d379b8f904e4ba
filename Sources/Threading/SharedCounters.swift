internal import CLinux
internal import Glibc

/// 64-bit counters in a file that any number of processes map and change at the same time.
///
/// `@unchecked Sendable`: the memory is only touched by atomic operations.
package final class SharedCounters: @unchecked Sendable {
    /// How many there are.
    package let count: Int
    private let memory: UnsafeMutableRawPointer

    /// Maps the first `count` words of an open file; nil with `errno` where that is not possible. Every page should have its block on the
    /// disk already. Where one finds no room, or somebody cuts the file short, the words of that page are 0 from then on and this process'
    /// changes to them are lost; it is not ended (SIGBUS).
    package init?(_ descriptor: Int32, count: Int) {
        guard let memory = clinux_map_shared(descriptor, count * 8) else { return nil }
        self.memory = memory
        self.count = count
    }

    deinit { clinux_unmap_shared(memory, count * 8) }

    /// Adds to one, wrapping around.
    package func add(_ value: Int64, to index: Int) {
        clinux_shared_add(word(index), value)
    }

    /// One as it is now.
    package subscript(index: Int) -> Int64 { clinux_shared_load(word(index)) }

    /// Sets one where it still is what was read before; false where somebody has changed it.
    package func replace(_ index: Int, _ expected: Int64, with value: Int64) -> Bool {
        clinux_shared_exchange(word(index), expected, value) == 1
    }

    private func word(_ index: Int) -> UnsafeMutableRawPointer {
        precondition((0..<count).contains(index), "no such counter")
        return memory + index * 8
    }
}
