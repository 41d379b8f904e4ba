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

/// What is needed to find the URLs of a list.
enum URLColumns: SettingGroup {
    static let settings = TableOptions.settings.filter { ["input_format", "url_column", "where"].contains($0.name) }
}

/// How much of a list is used.
struct ListPartOptions: SettingRecord, SettingGroup {
    var limit: Int?
    var listCopyMax = ListCopy.usualMost
    var dryRun = false

    static let settings: [Setting<ListPartOptions>] = [
        Setting("--limit", \.limit, .count(1...Int.max), "Only the first n URLs."),
        Setting("--list-copy-max", \.listCopyMax, .size(0...Int.max), "Largest list that is copied."),
        Setting("--dry-run", \.dryRun, .flag, "Count URLs, duplicates, hosts and hits; fetch none."),
    ]

    /// What a command that continues this list has to be given too.
    var words: String { limit.map { " --limit \($0)" } ?? "" }
}

/// The columns of a tabular list.
struct TableOptions: SettingRecord, SettingGroup {
    private(set) var options = ListInput.Options()

    private static func column(_ placeholder: String) -> SettingKind<String> {
        .text(placeholder, rule: "needs the name of a column") { !$0.isEmpty }
    }

    static let settings: [Setting<TableOptions>] = [
        Setting(
            "--input-format", \.options.format, .choice("format"),
            "Format of the list: auto, plain (one URL per line), jsonl, csv, tsv or sitemap (with the sitemaps of an index beside it)."
        ),
        Setting(
            "--url-column", \.options.urlColumn, column("column"),
            "Column of the URLs, by name or number. (default: url, or the first with URLs)"),
        Setting(
            "--sha256-column", \.options.sha256Column, column("column"),
            "Column with the SHA-256 that each image must have."),
        Setting(
            "--keep-columns", \.options.keepColumns,
            .texts("list", separator: ",", rule: "needs the name of a column") { !$0.isEmpty },
            "Columns, or members of JSON lines, to copy into the manifest, separated by commas."),
        Setting(
            "--where", \.options.condition, .text("condition"),
            "Rows of a Parquet file to take, as SQL: \"similarity > 0.3 AND width >= 256\"."),
    ]

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
        if !options.keepColumns.contains(column) { options.keepColumns.append(column) }
    }
}
