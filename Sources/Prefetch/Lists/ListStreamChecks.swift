internal import WebImage

/// What the lines of a list show when they are read for the first time, of each of its files by itself.
struct ListStreamChecks {
    private let format: ListFormat
    /// The files that were begun, which lines refer to.
    var beginnings: [ListInput.Beginning]
    /// Entries of all files, good and bad.
    private(set) var total = 0
    /// The last line that was looked at.
    private(set) var lines = 0
    /// The union of options of single lines.
    private var lineOptions: WebImageOptions = []
    /// The files that were read to their end.
    private var ended: [ListStream.Part] = []
    private var part = 0
    private var checks = ListChecks()

    init(_ format: ListFormat, _ beginnings: [ListInput.Beginning]) {
        self.format = [.jsonl, .plain].contains(format) ? format : .auto
        self.beginnings = beginnings
    }

    var reading: ListStream.Reading {
        ListStream.Reading(
            total: total, lines: lines, lineOptions: lineOptions, parts: ended, hasEnded: part == beginnings.count)
    }

    /// What the current file is called.
    var name: String { beginnings[part].name }

    /// What a line is.
    enum Look {
        case entry(JSONLine?)
        /// An entry that was looked at before.
        case known
        case none
    }

    /// Looks at a line, unless it was before.
    /// - Throws: `unreadableList`, of one of several files with its name.
    mutating func add(_ line: [UInt8], number: Int) throws(PrefetchError) -> Look {
        let isEntry = URLList.isEntry(line)
        guard number > lines else { return isEntry ? .known : .none }
        lines = number
        guard isEntry else { return .none }
        while part + 1 < beginnings.count, number >= beginnings[part + 1].line { try endPart() }
        let object: JSONLine?
        do throws(PrefetchError) {
            object = try checks.add(
                line, number: number - beginnings[part].line + 1, format, isWritten: beginnings[part].isWritten)
        } catch {
            throw named(error)
        }
        total += 1
        lineOptions.formUnion(checks.lineOptions)
        if checks.isNoList { throw noList() }
        return .entry(object)
    }

    /// * `isCut`: whether the list ends behind the last line, and may have further files.
    /// - Throws: `unreadableList` if one of the files has no URL.
    mutating func finish(isCut: Bool) throws(PrefetchError) {
        while part < beginnings.count {
            try endPart()
            if isCut { part = beginnings.count }
        }
    }

    private mutating func endPart() throws(PrefetchError) {
        guard checks.total > 0 else {
            throw PrefetchError(.unreadableList, "\(name) has no URL", hint: "what wrote it may have failed")
        }
        guard checks.hasURLs else { throw noList() }
        ended.append(
            ListStream.Part(
                name: name, total: checks.total, unknownMembers: checks.unknownMembers, unused: beginnings[part].unused)
        )
        (checks, part) = (ListChecks(), part + 1)
    }

    private func noList() -> PrefetchError { named(ListGuess.error(path: name, head: beginnings[part].head)) }

    private func named(_ error: PrefetchError) -> PrefetchError {
        beginnings.count > 1 ? ListInput.named(error, name) : error
    }
}
