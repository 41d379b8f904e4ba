internal import Glibc

/// Current paths of an open batch's lists: the original ones, or those given by the user.
struct ListPlaces: Sendable {
    private let id: String
    private let given: URLList?
    private let folder: String?

    /// * `path`: one of the lists, or a folder that has them under their names; nil: their original paths.
    /// - Throws: `notFound`, `unreadableList` if the file is not one of the lists.
    init(_ path: String?, of id: String, _ segments: [ListSegment]) throws(PrefetchError) {
        self.id = id
        guard let path, PathText.status(path).map({ $0.st_mode & S_IFMT != S_IFDIR }) ?? true else {
            (given, folder) = (nil, path)
            return
        }
        let list = try URLList(path: path)
        guard segments.contains(where: { $0.hash == list.hash }) else {
            throw PrefetchError(
                .unreadableList, "\(path) is none of the lists of \(id)",
                hint: "give a file that was added to it, or a folder that has them: --list PATH")
        }
        (given, folder) = (list, nil)
    }

    /// Possible paths of a list, likeliest first.
    func paths(_ segment: ListSegment) -> [String] {
        var paths: [String] = []
        if let given, given.hash == segment.hash { paths.append(given.path) }
        if let folder { paths.append("\(folder)/\(segment.path.split(separator: "/").last ?? "")") }
        return paths + [segment.path]
    }

    /// The list, if it is unchanged.
    func list(_ segment: ListSegment) throws(PrefetchError) -> URLList {
        try first(segment) { path throws(PrefetchError) in
            let list = try URLList(path: path)
            return list.hash == segment.hash ? list : nil
        }
    }

    /// The result of `open` for the first path that has the list; `open` returns nil if another file is there.
    func first<Opened>(
        _ segment: ListSegment, _ open: (String) throws(PrefetchError) -> Opened?
    ) throws(PrefetchError) -> Opened {
        var failure: PrefetchError?
        for path in paths(segment) {
            do throws(PrefetchError) {
                if let opened = try open(path) { return opened }
                failure = PrefetchError(.unreadableList, "\(path) is not that list any more")
            } catch {
                failure = error
            }
        }
        throw PrefetchError(
            failure?.kind ?? .notFound,
            "the list \(segment.number + 1) of \(id) cannot be used: \(failure?.message ?? segment.path)",
            hint: "give the file that was added, or a folder that has it: --list PATH")
    }
}
