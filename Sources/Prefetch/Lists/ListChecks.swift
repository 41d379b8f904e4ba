internal import WebImage

/// What a list shows when its lines are read for the first time.
struct ListChecks: Sendable {
    /// Entries that may all be no URL before it is taken for no list.
    private static let fewest = 200

    /// Entries, good and bad.
    private(set) var total = 0
    private(set) var hasURLs = false
    /// The union of options of single lines.
    private(set) var lineOptions: WebImageOptions = []
    private(set) var unknownMembers = UnknownMembers()
    private var known: Set<ByteText> = []
    private var plan: JSONLine.Plan?

    /// Whether so many entries were read that it would have shown a URL.
    var isNoList: Bool { total >= Self.fewest && !hasURLs }

    /// Looks at an entry's line; returns the object that it is.
    /// * `isWritten`: whether it was written here, of the row of a table.
    /// - Throws: `unreadableList` where it is not of the format, asks for what there is not, or has a member whose name is nearly one that
    ///   asks something.
    @discardableResult
    mutating func add(
        _ line: [UInt8], number: Int, _ format: ListFormat, isWritten: Bool = false
    ) throws(PrefetchError) -> JSONLine? {
        total += 1
        let written = isWritten ? JSONLine(written: line) : nil
        let object = written ?? (JSONLine.isOne(line) ? JSONLine.read(line, &plan) : nil)
        if let objection = format.objection(to: line, object, number: number, known: &known) { throw objection }
        if let object {
            if let settings = try? object.settings() { lineOptions.formUnion(settings.options) }
            unknownMembers.note(object.others, line: number)
        }
        // This pass only needs to know whether the first entries are URLs; the next pass reads the lines.
        if !hasURLs, total <= Self.fewest, URLList.entry(line, number: 1, object, columns: false)?.isInvalid == false {
            hasURLs = true
        }
        return object
    }
}
