internal import ArgumentParser
internal import Prefetch

/// What is where in a list that is a table.
struct TableOptions: ParsableArguments {
    @Option(help: "The column of the URLs, by its name or number; found by itself where it is called url.")
    var urlColumn: String?

    @Option(help: "The column of the SHA-256 that each image has to have.")
    var sha256Column: String?

    @Option(help: "Columns that a manifest has beside each line, with commas between.")
    var keepColumns: String?

    func validate() throws {
        for (name, value) in [
            ("--url-column", urlColumn), ("--sha256-column", sha256Column), ("--keep-columns", keepColumns),
        ] where value?.isEmpty == true { throw ValidationError("\(name) wants the name of a column") }
    }

    /// With how the list is written.
    func options(_ format: ListFormat) -> ListImport.Options {
        var options = ListImport.Options()
        options.format = format
        options.urlColumn = urlColumn
        options.sha256Column = sha256Column
        options.keepColumns = keepColumns?.split(separator: ",").map(String.init) ?? []
        return options
    }
}
