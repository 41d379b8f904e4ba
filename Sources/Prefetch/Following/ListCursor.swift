internal import WebImage

/// Random access to a list's entries: reading records the position of every 1,024th, later reads start at the nearest.
///
/// The file stays open, so replacing the list under its name does no harm.
final class ListCursor {
    private struct Checkpoint {
        var offset: Int
        var line: Int
    }

    private static let step = 1_024

    private var reader: LineReader
    private var checkpoints: [Checkpoint] = []
    /// The index of the next entry.
    private var at = 0

    init(path: String) throws(PrefetchError) { reader = try LineReader(path: path) }

    /// The entry of an index. Cheap for ascending indices. The file may have grown by whole lines.
    /// - Throws: `unreadableList` if the file has become shorter or unreadable.
    func entry(at index: Int) throws(PrefetchError) -> PrefetchJob.Entry {
        if index < at || index / Self.step > at / Self.step, index / Self.step < checkpoints.count {
            let place = checkpoints[index / Self.step]
            try reader.seek(to: place.offset, line: place.line)
            at = index / Self.step * Self.step
        }
        reader.resume()
        while let line = try reader.next() {
            guard let entry = URLList.entry(line, number: reader.lineNumber) else { continue }
            if at == checkpoints.count * Self.step {
                checkpoints.append(Checkpoint(offset: reader.lineOffset, line: reader.lineNumber))
            }
            at += 1
            if at > index { return entry }
        }
        throw PrefetchError(
            .unreadableList, "the list has no entry \(index) any more", hint: "it was changed while it was read")
    }
}
