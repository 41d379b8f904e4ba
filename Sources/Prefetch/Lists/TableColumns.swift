struct TableColumns: Equatable {
    /// The columns of URLs, and of required digests.
    var url: Int, sha256: Int?
    var kept: [(name: String, column: Int)]
    /// The column of captions, if it is kept without being asked for.
    private(set) var caption: String?
    /// False if the first row has a URL.
    var hasHeader: Bool

    static func == (left: TableColumns, right: TableColumns) -> Bool {
        left.url == right.url && left.sha256 == right.sha256 && left.hasHeader == right.hasHeader
            && left.kept.elementsEqual(right.kept) { $0 == $1 }
    }

    /// Names in the header that are neither used nor kept; none without a header.
    func unused(_ first: [String]) -> [String] {
        guard hasHeader else { return [] }
        let used = Set([url] + [sha256].compactMap { $0 } + kept.map(\.column))
        return first.indices.filter { !used.contains($0) && !first[$0].isEmpty }.map { first[$0] }
    }

    /// * `first`: the first row; `rows`: those behind it, where a column with URLs is looked for if none is called so.
    /// - Throws: `unreadableList` if a column is missing, with those that exist.
    init(_ first: [String], _ rows: [[String]] = [], _ options: ListInput.Options) throws(PrefetchError) {
        let isURL = first.map { URLLines.isURL($0) }
        let isNamed = !isURL.contains(true)
        hasHeader = isNamed
        func column(_ word: String, for what: String) throws(PrefetchError) -> Int {
            if let number = Int(word), (1...first.count).contains(number) { return number - 1 }
            let place =
                first.firstIndex { $0.hasBytes(of: word) } ?? first.firstIndex { $0.lowercased() == word.lowercased() }
            guard isNamed, let place else {
                throw PrefetchError(
                    .unreadableList, "there is no column '\(word)' for \(what)",
                    hint: isNamed
                        ? "the first row has \(first.prefix(20).joined(separator: ", "))"
                        : "the first row is a URL already; give the column's number, from 1")
            }
            return place
        }
        if let word = options.urlColumn {
            url = try column(word, for: "the URL")
        } else if let place = isURL.firstIndex(of: true) {
            url = place
        } else {
            let named = URLColumn.places(in: first).first
            let seen = rows.lazy.compactMap { row in row.firstIndex(where: URLLines.isURL) }
            guard let place = named ?? seen.first(where: first.indices.contains) else {
                throw PrefetchError(
                    .unreadableList, "no column is called url, or anything like it, and the first rows have no URL",
                    hint: "name it: --url-column; the first row has \(first.prefix(20).joined(separator: ", "))")
            }
            url = place
        }
        sha256 = if let word = options.sha256Column { try column(word, for: "the SHA-256") } else { nil }
        kept = []
        for word in options.keepColumns {
            let place = try column(word, for: "what is kept")
            let name = isNamed ? first[place] : word
            // Members of one object: of two that are canonically equivalent, Foundation has one.
            if let other = kept.first(where: { $0.name == name && $0.column != place }) {
                throw PrefetchError(
                    .unreadableList, "columns \(other.column + 1) and \(place + 1) are both called \(name)",
                    hint: "a manifest has one of each name: rename one of them, or keep only one")
            }
            kept.append((name, place))
        }
        guard hasHeader, let place = Self.caption(first), !([url] + [sha256].compactMap(\.self)).contains(place),
            !kept.contains(where: { $0.column == place || $0.name == first[place] })
        else { return }
        caption = first[place]
        kept.append((first[place], place))
    }

    /// What columns of captions are called, in any case; the likeliest first.
    private static let captions = ["caption", "text", "alt"]

    private static func captionRank(_ name: String) -> Int? {
        (3...7).contains(name.utf8.count)
            ? captions.firstIndex { $0.isASCIICaseInsensitivelyEqual(to: name) } : nil
    }

    /// The place of the column with the captions; nil if none is called so.
    static func caption(_ names: [String]) -> Int? {
        names.indices.compactMap { place in captionRank(names[place]).map { (rank: $0, place: place) } }.min {
            $0 < $1
        }?.place
    }
}
