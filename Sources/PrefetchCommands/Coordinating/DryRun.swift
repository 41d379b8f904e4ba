internal import Glibc
internal import Prefetch
internal import WebImage

/// `run` and `submit` with `--dry-run`: counts the lines of the list, and those that would be fetched. Nothing is left behind.
struct DryRun {
    let list: GivenList
    /// Need not be there; nil: none was named.
    let cache: String?
    var readOnly: [String] = []
    let table: TableOptions
    let limit: Int?
    let options: BatchOptions
    let isJSON: Bool

    /// - Throws: as ``GivenList``; `cacheUnavailable` if the cache cannot be read.
    func run() async throws {
        let disk: DiskCache? =
            if let cache, access(cache, F_OK) == 0 { try CacheOpening.forReading(cache, readOnly) } else { nil }
        try await list.use(table, limit: limit) { list in
            let survey = try await ListSurvey(BatchEntries(list), cache: disk, rule: CacheKeyRule(options))
            try DryAnswer(
                list: list.name, lines: list.reading.lines, survey: survey, isCacheKnown: cache != nil,
                options: options.options
            ).sheet.print(asJSON: isJSON)
        }
    }
}

/// The counts of a list, and how much of it would be fetched.
struct DryAnswer: Record {
    let list: String
    let lines: Int
    let survey: ListSurvey
    let isCacheKnown: Bool
    let options: WebImageOptions

    static let fields: [Field<DryAnswer>] = [
        .version, Field("list", \.list), Field("lines", \.lines), Field("urls", \.survey.urls),
        Field("invalid", \.survey.invalid), Field("duplicates", \.survey.duplicates),
        Field("duplicates_exact") { !$0.survey.mayHaveMoreDuplicates },
        Field("cached") { $0.isCacheKnown ? $0.survey.cached : nil as Int? }, Field("to_fetch", \.fetched),
        Field("hosts", about: "Those with most URLs, ten at most.", \.hosts),
    ]

    /// URLs for which a request would be made.
    private var fetched: Int {
        if options.contains(.fromCacheOnly) { return 0 }
        return options.refreshes ? survey.missing + survey.cached : survey.missing
    }

    private var hosts: [HostURLs] {
        survey.hosts.map { HostURLs(host: $0.name, urls: $0.urls, share: Share(part: $0.urls, whole: survey.urls)) }
    }

    var sheet: Sheet {
        var sheet = Sheet(self)
        let isExact = !survey.mayHaveMoreDuplicates
        sheet.add(
            "\(TerminalText.escaped(list)): \(Wording.count(lines, "line")), \(Wording.count(survey.urls, "URL")), "
                + "\(Wording.count(survey.invalid)) invalid")
        sheet.parts.append(
            .rows([
                ("duplicates", "\(isExact ? "" : "at least ")\(Wording.count(survey.duplicates))"),
                ("in the cache", isCacheKnown ? Wording.count(survey.cached) : "unknown: no --cache"),
                ("to fetch", "\(isExact ? "" : "at most ")\(Wording.count(fetched))"),
            ]))
        sheet.add(table: hosts)
        return sheet
    }
}

private struct HostURLs: Record {
    let host: String, urls: Int, share: Share

    static let fields: [Field<HostURLs>] = [
        Field("host", "host", \.host), Field("urls", "URLs", \.urls), .column("share", \.share),
    ]
}
