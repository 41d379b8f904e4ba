internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache gc`: removes what is old, too much, or of no list.
struct CacheCollectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract: "Remove images by age, by size, or that are not in a list.",
        usage: "prefetch-coord cache gc [--max-age D] [--max-size S] [--not-in LIST] ...",
        discussion: """
            Examples:
              prefetch-coord cache gc --max-age 7d --cache ./cache --yes
              prefetch-coord cache gc --max-size 10GiB --dry-run -v
              prefetch-coord cache gc --not-in urls.txt

            Images older than --max-age are removed first, then the oldest until the rest
            fits into --max-size. Images of a running batch stay. With --not-in the cache
            mirrors its lists: images of other URLs go, but for those that --resize and
            the like have made. Temporary files that a crash has left are removed after an
            hour, files that were moved aside as damaged after --max-age. It says how many images it would remove and asks; without a
            terminal it needs --yes. Exit code 75 if another process is cleaning this cache.
            """)

    @Option(help: .age("Remove images of this age or older: 12h, 7d; 0 = all."))
    var maxAge: Age?

    @Option(help: .size("Disk space that images may take: 10GiB."))
    var maxSize: ByteSize?

    @Option(
        name: .customLong("not-in"),
        help: .value("list", "Remove images of URLs that are in none of these lists. Repeatable."), completion: .file())
    var lists: [String] = []

    @Option(help: .value("date", "Date that decides the age of an image: modified, accessed, created or changed."))
    var expireBy = ExpiryDate.modified

    @Flag(help: "Print what would be removed; remove nothing.")
    var dryRun = false

    @Flag(name: .shortAndLong, help: "Print each file.")
    var verbose = false

    @Flag(help: "Print one JSON object; with -v one per file before it.")
    var json = false

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "List") var table: SettingOptions<URLColumns>
    @OptionGroup(title: "Cache") var options: CacheOptions

    func validate() throws {
        guard maxAge != nil || maxSize != nil || !lists.isEmpty else {
            throw ValidationError("nothing is removed without a rule: give --max-age, --max-size or --not-in")
        }
    }

    func run() async throws {
        var folder = CacheFolder()
        folder.cache = options.cache
        let disk = try folder.openForRemoving(expireBy.type)
        var rules = SweepRules(maxAge: maxAge?.seconds, maxSize: maxSize?.bytes)
        if !lists.isEmpty { rules.listed = try await listed(disk) }
        rules.removesLeftovers = true
        rules.isDryRun = dryRun
        if !dryRun && !confirmation.yes {
            rules.isDryRun = true
            let plan = try sweep(disk, rules) { _ in }
            rules.isDryRun = false
            let all = SweepReport.Sum(
                count: plan.expired.count + plan.evicted.count + plan.unlisted.count,
                size: plan.expired.size + plan.evicted.size + plan.unlisted.size)
            if all.count > 0 {
                let isEmptied = plan.remaining.count == 0 && plan.spared.count == 0
                let whole = isEmptied ? "everything in" : "of \(Wording.count(all.count + plan.remaining.count)) in"
                try confirmation.ask(
                    "remove \(all.text), \(whole) \(TerminalText.escaped(disk.directory))", "cache gc")
            }
        }
        let report = try sweep(disk, rules) { image in if verbose { tell(image) } }
        try CollectAnswer(isDryRun: dryRun, report: report).sheet(rules).print(asJSON: json)
    }

    /// What stays: the images of the lists' URLs, and those that were made of another one, whose names no URL gives.
    /// - Throws: as ``GivenList``; `unreadableList` where a list has no URL; `inputOutput` where an image cannot be read.
    private func listed(_ disk: DiskCache) async throws -> ImageNames {
        let given = try await GivenList(lists, FetchSettings().complete(), StateOption.folder(nil))
        var keys = try await given.use(table.record) { list in
            var keys: [CacheKey] = []
            try await BatchEntries(list).forEach { entry async throws(PrefetchError) in
                if !entry.isInvalid, let key = try? options.rule.key(for: entry.url, entry.settings) {
                    keys.append(CacheKey(key))
                }
                return true
            }
            return keys
        }
        try GivenList.requireURLs(keys.count, of: lists.map(TerminalText.escaped).joined(separator: ", "))
        let wanted = ImageNames(keys)
        let unread = try CacheFolder().walk(disk) { entry in
            if entry.record?.original != nil, !wanted.contains(entry.key) { keys.append(entry.key) }
            return true
        }
        guard unread == 0 else {
            throw PrefetchError(
                .inputOutput, "\(Wording.count(unread, "image")) cannot be read, and nothing was removed",
                hint: "see above; prefetch-coord cache verify --repair moves damaged ones aside")
        }
        return ImageNames(keys)
    }

    private func sweep(
        _ disk: DiskCache, _ rules: SweepRules, _ removed: (SweptImage) -> Void
    ) throws(PrefetchError) -> SweepReport {
        let report: SweepReport?
        do throws(WebImageError) {
            report = try disk.sweep.run(rules, visit: removed)
        } catch {
            throw PrefetchError(.cacheUnavailable, error.message)
        }
        guard let report else {
            throw PrefetchError(
                .stopped, "another process is sweeping the cache \(TerminalText.escaped(disk.directory))",
                hint: "nothing was done here; when it has ended, the same command again")
        }
        return report
    }

    private func tell(_ image: SweptImage) {
        Console.print(
            json
                ? image.json.text
                : "\(image.reason.rawValue): \(TerminalText.escaped(image.path)), \(Wording.bytes(image.size)), \(UTCTime.text(seconds: image.date))"
        )
    }
}

/// What was removed from a cache, or would be.
struct CollectAnswer: Record {
    let isDryRun: Bool
    let report: SweepReport

    static let fields: [Field<CollectAnswer>] = [
        .version, Field("dry_run", \.isDryRun), Field("expired", \.report.expired),
        Field("evicted", \.report.evicted), Field("unlisted", \.report.unlisted), Field("spared", \.report.spared),
        Field("remaining", \.report.remaining),
        Field("temporary_files", \.report.temporaryFiles), Field("moved_aside", \.report.movedAside),
    ]

    func sheet(_ rules: SweepRules) -> Sheet {
        var sheet = Sheet(self)
        let verb = isDryRun ? "would remove" : "removed"
        if rules.maxAge != nil { sheet.add("\(verb) for --max-age: \(report.expired.text)") }
        if rules.maxSize != nil { sheet.add("\(verb) for --max-size, the oldest: \(report.evicted.text)") }
        if rules.listed != nil { sheet.add("\(verb) for --not-in: \(report.unlisted.text)") }
        if report.spared.count > 0 { sheet.add("kept, fetched by a running batch or in use: \(report.spared.text)") }
        if report.temporaryFiles + report.movedAside > 0 {
            sheet.add(
                "\(verb) besides: temporary files \(Wording.count(report.temporaryFiles)), moved aside "
                    + Wording.count(report.movedAside))
        }
        sheet.add("\(isDryRun ? "would be left" : "left"): \(report.remaining.text)")
        return sheet
    }
}

extension SweepReport.Sum: Record {
    static let fields: [Field<SweepReport.Sum>] = [Field("count", \.count), Field("allocated_bytes", \.size)]

    var text: String { "\(Wording.count(count, "image")), \(Wording.bytes(size)) on disk" }
}

extension SweptImage: Record {
    static let fields: [Field<SweptImage>] = [
        Field("path", \.path), Field("rule", \.reason.rawValue), Field("allocated_bytes", \.size),
        Field("date", about: "What decides its age.") { Moment(seconds: $0.date) },
    ]
}

extension CacheFolder {
    /// The cache for a command that removes from it: it has to be there.
    func openForRemoving(_ type: DiskCache.ExpireType) throws(PrefetchError) -> DiskCache {
        let found = try open()
        guard access("\(found.directory)/v1", F_OK) == 0 else {
            throw PrefetchError(
                .notFound, "\(TerminalText.escaped(found.directory)) is not a cache of prefetch",
                hint: "name the cache: --cache DIR")
        }
        do throws(WebImageError) {
            return try DiskCache(
                directory: found.directory, configuration: DiskCache.Configuration(expireType: type))
        } catch {
            throw PrefetchError(
                .cacheUnavailable, error.message, hint: "name a cache that this user may write: --cache DIR")
        }
    }
}
