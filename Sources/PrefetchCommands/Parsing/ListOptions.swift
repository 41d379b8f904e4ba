internal import ArgumentParser
internal import Prefetch

/// Whether there may be no URL at all on standard input.
struct EmptyListOptions: ParsableArguments {
    @Flag(help: "Accept a list without URLs.")
    var allowEmpty = false

    /// - Throws: `unreadableList` where there is no URL and there has to be one.
    func check(_ count: Int, of name: String) throws(PrefetchError) {
        guard count == 0, !allowEmpty else { return }
        throw PrefetchError(
            .unreadableList, "\(name) has no URL", hint: "--allow-empty accepts such a list")
    }
}

/// How much of a list is used.
struct ListPartOptions: ParsableArguments {
    @Option(help: .count("Only the first n URLs."))
    var limit: Int?

    @Option(help: .size("Largest list that is copied."))
    var listCopyMax = ByteSize(bytes: ListCopy.usualMost)

    @Flag(help: "Count URLs, duplicates, hosts and hits; fetch none.")
    var dryRun = false

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit is a number from 1") }
    }

    /// What a command that continues this list has to be given too.
    var words: String { limit.map { " --limit \($0)" } ?? "" }
}

/// The columns of a tabular list.
struct TableOptions: ParsableArguments {
    @Option(
        help: .value(
            "format",
            "Format of the list: auto, plain (one URL per line), jsonl, csv, tsv or sitemap (with the sitemaps of an index beside it)."
        ))
    var inputFormat = ListFormat.auto

    @Option(help: .value("column", "Column of the URLs, by name or number. (default: url, or the first with URLs)"))
    var urlColumn: String?

    @Option(help: .value("column", "Column with the SHA-256 that each image must have."))
    var sha256Column: String?

    @Option(help: .list("Columns, or members of JSON lines, to copy into the manifest, separated by commas."))
    var keepColumns: String?

    @Option(
        name: .customLong("where"),
        help: .value("condition", "Rows of a Parquet file to take, as SQL: \"similarity > 0.3 AND width >= 256\"."))
    var condition: String?

    func validate() throws {
        for (name, value) in [
            ("--url-column", urlColumn), ("--sha256-column", sha256Column), ("--keep-columns", keepColumns),
        ] where value?.isEmpty == true { throw ValidationError("\(name) needs the name of a column") }
    }

    /// Tells which names of a list nothing uses.
    ///
    /// * `columns`: of a table. Those that are not used are usual, but for a digest that nothing checks.
    static func judge(_ members: UnknownMembers, columns: [String], of name: String) {
        for column in columns where EditDistance.between(column.lowercased(), "sha256") <= 2 {
            Console.note(
                TerminalText.escaped(
                    "warning: nothing is checked against the column \(column): --sha256-column \(column)"))
        }
        guard !members.uses.isEmpty else { return }
        let uses = members.uses.prefix(20).map {
            "\(TerminalText.escaped(String($0.name.prefix(40)))) (\(Wording.count($0.count, "line")))"
        }
        let more = members.uses.count > uses.count || members.hasMore ? " and others" : ""
        Console.note(
            "warning: members that nothing uses: \(uses.joined(separator: ", "))\(more); "
                + "--keep-columns NAME,… keeps them for export")
    }

    /// Keeps one more column.
    mutating func keep(_ column: String) {
        guard !options.keepColumns.contains(column) else { return }
        keepColumns = (options.keepColumns + [column]).joined(separator: ",")
    }

    var options: ListInput.Options {
        var options = ListInput.Options()
        options.format = inputFormat
        options.urlColumn = urlColumn
        options.sha256Column = sha256Column
        options.condition = condition
        options.keepColumns = keepColumns?.split(separator: ",").map(String.init) ?? []
        return options
    }
}
