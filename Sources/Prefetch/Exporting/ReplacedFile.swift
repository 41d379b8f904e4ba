internal import FoundationEssentials
internal import Glibc

/// A file of the user's in the place of a new one. Results replace a manifest of the same batch; any other file with content only on
/// request, and a list never.
package struct ReplacedFile: Sendable {
    /// A line of a list.
    private struct Place: Decodable {
        var line: Int
        var url: String
    }

    private let path: String
    private let first: Place?, last: Place?

    /// Nil if nothing is lost: the file is missing or empty, or is none (a pipe, /dev/null).
    package init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return nil }
        self.path = path
        (first, last) = Self.ends(of: path)
    }

    /// Refuses a file that is one of these lists, by this name, another one or a link.
    /// - Throws: `cacheUnavailable` (73).
    package static func refuse(_ path: String, over lists: [String]) throws(PrefetchError) {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
        for list in lists where !list.isEmpty {
            guard let other = PathText.status(list), other.st_dev == status.st_dev, other.st_ino == status.st_ino else {
                continue
            }
            throw PrefetchError(
                .cacheUnavailable, "\(path) is the list; results are never written over it", hint: "name another file")
        }
    }

    /// Whether it is a manifest of these entries: JSON lines or a table, in which the first and the last line are theirs.
    /// * `spellings`: the forms in which a manifest may have a URL.
    package func isManifest(
        of entries: BatchEntries, spellings: (String) -> [String]
    ) async throws(PrefetchError) -> Bool {
        guard let first, let last else { return false }
        var ends: (first: PrefetchJob.Entry, last: PrefetchJob.Entry)?
        try await entries.forEach { entry async throws(PrefetchError) in
            ends = (ends?.first ?? entry, entry)
            return true
        }
        guard let ends else { return false }
        func isSame(_ place: Place, _ entry: PrefetchJob.Entry) -> Bool {
            place.line == entry.line && spellings(entry.url).contains { $0.utf8.elementsEqual(place.url.utf8) }
        }
        return isSame(first, ends.first) && isSame(last, ends.last)
    }

    /// Why it is not replaced.
    /// * `what`: what it would have to be.
    package func refusal(_ what: String) -> PrefetchError {
        PrefetchError(
            .cacheUnavailable, "\(path) exists, and is not \(what)",
            hint: "name another file, or replace this one: --overwrite")
    }

    /// Its beginning, at most so many bytes.
    package func head(_ count: Int) -> [UInt8] {
        guard let file = try? ListFile.open(path) else { return [] }
        defer { close(file) }
        return Self.read(file, at: 0, count)
    }

    /// The lines that begin and end a manifest; nil where it is none.
    private static func ends(of path: String) -> (Place?, Place?) {
        guard let file = try? ListFile.open(path) else { return (nil, nil) }
        defer { close(file) }
        let size = Int(lseek(file, 0, SEEK_END))
        let head = read(file, at: 0, 1 << 20)
        let lines = head.split(separator: UInt8(ascii: "\n"), maxSplits: 2)
        guard let top = lines.first, let tail = lastLine(of: file, size) else { return (nil, nil) }
        if top.first == UInt8(ascii: "{") { return (object(top), object(tail)) }
        guard lines.count > 1,
            let separator = [UInt8(ascii: ","), UInt8(ascii: "\t")].first(where: {
                top.starts(with: "line".utf8 + [$0] + "url".utf8 + [$0])
            })
        else { return (nil, nil) }
        return (row(lines[1], separator), row(tail, separator))
    }

    private static func object(_ line: ArraySlice<UInt8>) -> Place? {
        try? JSONDecoder().decode(Place.self, from: Data(line))
    }

    private static func row(_ line: ArraySlice<UInt8>, _ separator: UInt8) -> Place? {
        var reader = CSVReader(separator: separator)
        var place: Place?
        func take(_ record: CSVReader.Record) {
            guard record.count > 1, let line = Int(String(decoding: record[0], as: UTF8.self)) else { return }
            place = Place(line: line, url: String(decoding: record[1], as: UTF8.self))
        }
        try? reader.read(line, take)
        try? reader.finish(take)
        return place
    }

    /// The last line without its end; nil if it is too long for a manifest.
    private static func lastLine(of file: Int32, _ size: Int) -> ArraySlice<UInt8>? {
        var count = 1 << 12
        while true {
            var bytes = read(file, at: max(0, size - count), min(count, size))[...]
            while let last = bytes.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { bytes.removeLast() }
            if let newline = bytes.lastIndex(of: UInt8(ascii: "\n")) { return bytes[(newline + 1)...] }
            guard count < size else { return bytes }
            guard count < 1 << 26 else { return nil }
            count *= 8
        }
    }

    private static func read(_ file: Int32, at offset: Int, _ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let got = pread(file, buffer.baseAddress?.advanced(by: filled), count - filled, off_t(offset + filled))
                if got < 0 && errno == EINTR { continue }
                guard got > 0 else { return }
                filled += got
            }
        }
    }
}
