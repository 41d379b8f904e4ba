/// The shards of a run.
package struct WrittenShards: Sendable, Equatable {
    package var written = 0
    /// Of their files.
    package var bytes = 0
    /// Those of which the first lines have ended, and not all.
    package var open = 0

    package init() {}

    /// Nil of a text that is none.
    init?(_ text: String) {
        let numbers = text.split(separator: " ").map { Int($0) ?? -1 }
        guard numbers.count == 3, numbers.allSatisfy({ $0 >= 0 }) else { return nil }
        (written, bytes, open) = (numbers[0], numbers[1], numbers[2])
    }
}
