/// The URLs of an open batch by index. A list is opened when one of its URLs is needed, and few stay open: there may be thousands.
final class SegmentedList {
    private static let maxOpen = 8

    private let places: ListPlaces
    /// Lists with URLs, in order.
    private var segments: [ListSegment] = []
    /// Least recently used first.
    private var open: [(number: Int, cursor: ListCursor)] = []
    private var failures: [Int: PrefetchError] = [:]

    /// * `path`: one of the lists, or a folder that has them; nil: their original paths.
    /// - Throws: `notFound`, `unreadableList` if the file is not one of the lists.
    init(_ path: String?, of id: String, _ segments: [ListSegment]) throws(PrefetchError) {
        places = try ListPlaces(path, of: id, segments)
        extend(segments)
    }

    var end: Int { segments.last?.end ?? 0 }

    func extend(_ all: [ListSegment]) {
        segments = all.filter { $0.total > 0 }
    }

    /// A failure if its list cannot be read, or no list has the index.
    func url(at index: Int) -> Result<String, PrefetchError> {
        var (low, high) = (0, segments.count)
        while low < high {
            let middle = (low + high) / 2
            if segments[middle].end <= index { low = middle + 1 } else { high = middle }
        }
        guard low < segments.count, segments[low].base <= index else {
            return .failure(PrefetchError(.unreadableList, "no list has the URL \(index)"))
        }
        let segment = segments[low]
        if let failure = failures[segment.number] { return .failure(failure) }
        do throws(PrefetchError) {
            return .success(try cursor(segment).entry(at: index - segment.base).url)
        } catch {
            failures[segment.number] = error
            return .failure(error)
        }
    }

    private func cursor(_ segment: ListSegment) throws(PrefetchError) -> ListCursor {
        if let at = open.lastIndex(where: { $0.number == segment.number }) {
            if at != open.count - 1 { open.append(open.remove(at: at)) }
            return open[open.count - 1].cursor
        }
        let cursor = try places.first(segment) { path throws(PrefetchError) in
            let cursor = try ListCursor(path: path)
            return cursor.hash == segment.hash ? cursor : nil
        }
        if open.count == Self.maxOpen { open.removeFirst() }
        open.append((segment.number, cursor))
        return cursor
    }
}
