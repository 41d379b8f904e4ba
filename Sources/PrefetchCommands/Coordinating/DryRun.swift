internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import WebImage

/// `run` and `submit` with `--dry-run`: what the list holds and what of it would be fetched. Nothing is left behind.
struct DryRun {
    let files: [String]
    /// Need not be there; nil: none was named.
    let cache: String?
    var readOnly: [String] = []
    let table: TableOptions
    let limit: Int?
    let batch: BatchArguments
    let isJSON: Bool

    /// - Throws: as ``GivenList``; `cacheUnavailable` if the cache cannot be read.
    func run() async throws {
        // Copies of pipes and tables would otherwise be in the cache folder.
        var template = Array("\(ListFile.temporaryFolder)/prefetch-dry-run-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw PrefetchError(
                .inputOutput,
                "cannot make a folder in \(ListFile.temporaryFolder): \(String(cString: strerror(errno)))",
                hint: "set TMPDIR to a folder that this user may write")
        }
        let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let list = try GivenList(
            files, cache: nil, folder: folder, table: table, limit: limit
        ).list
        let disk: DiskCache? =
            if let cache, access(cache, F_OK) == 0 { try CacheOpening.forReading(cache, readOnly) } else { nil }
        let survey = try await ListSurvey(list, cache: disk, rule: CacheKeyRule(batch.options))
        let name = GivenList.name(of: files)
        if isJSON {
            Console.print(json(survey, list, name).text)
        } else {
            for line in text(survey, list, name) { Console.print(line) }
        }
    }

    /// URLs for which a request would be made.
    private func fetched(_ survey: ListSurvey) -> Int {
        let options = batch.options.options
        if options.contains(.fromCacheOnly) { return 0 }
        return options.refreshes ? survey.missing + survey.cached : survey.missing
    }

    private func text(_ survey: ListSurvey, _ list: URLList, _ name: String) -> [String] {
        let least = survey.mayHaveMoreDuplicates ? "at least " : ""
        let most = survey.mayHaveMoreDuplicates ? "at most " : ""
        var lines = [
            "\(TerminalText.escaped(name)): \(Wording.count(list.lines, "line")), \(Wording.count(survey.urls, "URL")), "
                + "\(Wording.count(survey.invalid)) invalid",
            "  duplicates    \(least)\(Wording.count(survey.duplicates))",
            "  in the cache  \(cache == nil ? "unknown: no --cache" : Wording.count(survey.cached))",
            "  to fetch      \(most)\(Wording.count(fetched(survey)))",
        ]
        if !survey.hosts.isEmpty { lines.append("hosts:") }
        for host in survey.hosts {
            lines.append(
                "  \(Wording.count(host.urls))  \(Wording.share(host.urls, of: survey.urls))  \(TerminalText.escaped(host.name))"
            )
        }
        return lines
    }

    private func json(_ survey: ListSurvey, _ list: URLList, _ name: String) -> JSONText {
        .object([
            ("v", .int(1)), ("list", .string(name)), ("lines", .int(list.lines)), ("urls", .int(survey.urls)),
            ("invalid", .int(survey.invalid)), ("duplicates", .int(survey.duplicates)),
            ("duplicates_exact", .bool(!survey.mayHaveMoreDuplicates)),
            ("cached", cache == nil ? .null : .int(survey.cached)), ("to_fetch", .int(fetched(survey))),
            (
                "hosts",
                .array(survey.hosts.map { .object([("host", .string($0.name)), ("urls", .int($0.urls))]) })
            ),
        ])
    }
}
