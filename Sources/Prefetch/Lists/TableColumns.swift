struct TableColumns: Equatable {
    /// The columns of URLs, and of required digests.
    var url: Int, sha256: Int?
    var kept: [(name: String, column: Int)]
    /// False if the first row has a URL.
    var hasHeader: Bool

    /// Usual names of a URL column, most specific first.
    private static let names = [
        "url", "image_url", "imageurl", "image", "img_url", "img", "image_link", "src", "link", "href", "uri", "loc",
    ]

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

    /// * `first`: the first row.
    /// - Throws: `unreadableList` if a column is missing, with those that exist.
    init(_ first: [String], _ options: ListImport.Options) throws(PrefetchError) {
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
            let lower = first.map { $0.lowercased() }
            guard let place = Self.names.lazy.compactMap({ lower.firstIndex(of: $0) }).first else {
                throw PrefetchError(
                    .unreadableList, "no column is called url, or anything like it, and the first row has no URL",
                    hint: "name it: --url-column; the first row has \(first.prefix(20).joined(separator: ", "))")
            }
            url = place
        }
        sha256 = if let word = options.sha256Column { try column(word, for: "the SHA-256") } else { nil }
        kept = []
        for word in options.keepColumns {
            let place = try column(word, for: "what is kept")
            kept.append((isNamed ? first[place] : word, place))
        }
    }
}
