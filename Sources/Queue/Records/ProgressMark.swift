internal import Redis

/// Where a batch was at a moment. Its record has two of the last seconds, so that one reading tells its present rate.
package struct ProgressMark: Sendable, Equatable {
    /// Milliseconds since 1970.
    package var at: Int
    package var finished: Int, skipped: Int, bytes: Int

    package init(at: Int, finished: Int, skipped: Int, bytes: Int) {
        (self.at, self.finished, self.skipped, self.bytes) = (at, finished, skipped, bytes)
    }

    /// The two of a record: `at finished skipped bytes` twice, the older one first. None if it says anything else, or goes back.
    static func marks(_ text: String) -> [ProgressMark] {
        let numbers = text.split(atByte: " ").compactMap { Int(plausible: $0) }
        guard numbers.count == 8, numbers.allSatisfy({ $0 >= 0 }), numbers[0] <= numbers[4], numbers[1] <= numbers[5]
        else { return [] }
        return [0, 4].map { start in
            ProgressMark(
                at: numbers[start], finished: numbers[start + 1], skipped: numbers[start + 2],
                bytes: numbers[start + 3])
        }
    }
}
