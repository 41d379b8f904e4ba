internal import WebImage

/// Entries of a list by their index, without reading it from its start each time: one pass finds where every 1,024th begins.
///
/// It keeps the file open, so that a list that is replaced under its name meanwhile does no harm.
final class ListCursor {
    private struct Checkpoint {
        var offset: Int
        var line: Int
    }

    /// Entries between two known places.
    private static let step = 1_024

    /// Hex SHA-256 of the file's bytes.
    let hash: String
    /// How many entries it has.
    let total: Int
    private var reader: LineReader
    private var checkpoints: [Checkpoint] = []
    /// Index of the entry that is read next.
    private var at: Int

    /// Reads the list once.
    /// - Throws: `notFound`, `unreadableList`.
    init(path: String) throws(PrefetchError) {
        reader = try LineReader(path: path)
        let hasher = SHA256Hasher()
        reader.observe = { bytes, range in
            bytes.withUnsafeBytes { hasher.update(UnsafeRawBufferPointer(rebasing: $0[range])) }
        }
        var count = 0
        while let (line, isCut) = try reader.next() {
            guard URLList.entry(line, isCut: isCut, number: reader.lineNumber) != nil else { continue }
            if count % Self.step == 0 {
                checkpoints.append(Checkpoint(offset: reader.lineOffset, line: reader.lineNumber))
            }
            count += 1
        }
        reader.observe = nil
        hash = hasher.finishedHex()
        total = count
        at = count
    }

    /// The entry of an index. Cheap where indices ascend.
    /// - Throws: `unreadableList` where the file has become shorter or cannot be read any more.
    func entry(at index: Int) throws(PrefetchError) -> PrefetchJob.Entry {
        if index < at || index / Self.step > at / Self.step, index / Self.step < checkpoints.count {
            let place = checkpoints[index / Self.step]
            try reader.seek(to: place.offset, line: place.line)
            at = index / Self.step * Self.step
        }
        while let (line, isCut) = try reader.next() {
            guard let entry = URLList.entry(line, isCut: isCut, number: reader.lineNumber) else { continue }
            at += 1
            if at > index { return entry }
        }
        throw PrefetchError(
            .unreadableList, "the list has no entry \(index) any more", hint: "it was changed while it was read")
    }
}
