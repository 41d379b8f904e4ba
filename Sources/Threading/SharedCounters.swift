internal import CLinux
internal import Glibc

/// 64-bit counters in a file that several processes map and update concurrently.
///
/// `@unchecked Sendable`: the memory is accessed only by atomic operations.
package final class SharedCounters: @unchecked Sendable {
    package let count: Int
    private let memory: UnsafeMutableRawPointer

    /// Maps the first `count` words of an open file; nil with `errno` on failure. Allocate the file's blocks first. If a page has no space,
    /// or the file is truncated, its words read 0 from then on and changes to them are lost, without SIGBUS.
    package init?(_ descriptor: Int32, count: Int) {
        guard let memory = clinux_map_shared(descriptor, count * 8) else { return nil }
        self.memory = memory
        self.count = count
    }

    deinit { clinux_unmap_shared(memory, count * 8) }

    /// Adds to a counter, wrapping around.
    package func add(_ value: Int64, to index: Int) {
        clinux_shared_add(word(index), value)
    }

    package subscript(index: Int) -> Int64 { clinux_shared_load(word(index)) }

    /// Sets a word that nobody else writes meanwhile.
    package func set(_ index: Int, _ value: Int64) {
        var known = self[index]
        while !replace(index, known, with: value) { known = self[index] }
    }

    /// Compare-and-set; false if the counter no longer equals `expected`.
    package func replace(_ index: Int, _ expected: Int64, with value: Int64) -> Bool {
        clinux_shared_exchange(word(index), expected, value) == 1
    }

    private func word(_ index: Int) -> UnsafeMutableRawPointer {
        precondition((0..<count).contains(index), "no such counter")
        return memory + index * 8
    }
}
