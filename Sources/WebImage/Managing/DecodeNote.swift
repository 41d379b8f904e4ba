/// Notes which images are in a decoder, to be read after the death of the process.
package struct DecodeNote: Sendable {
    /// Returns what ``end`` is to be called with; nil: nothing was noted.
    let begin: @Sendable () -> Int?
    let end: @Sendable (Int) -> Void

    package init(begin: @escaping @Sendable () -> Int?, end: @escaping @Sendable (Int) -> Void) {
        (self.begin, self.end) = (begin, end)
    }

    /// Runs what may decode.
    static func taking<Value>(
        _ note: DecodeNote?, _ body: () throws(WebImageError) -> Value
    ) throws(WebImageError) -> Value {
        guard let note, let place = note.begin() else { return try body() }
        defer { note.end(place) }
        return try body()
    }
}
