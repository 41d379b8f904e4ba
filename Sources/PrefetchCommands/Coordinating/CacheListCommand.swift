internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache ls`: every image of the cache.
struct CacheListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List the images of the cache, or number and size of them.",
        usage: "prefetch-coord cache ls [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache ls --cache ./cache
              prefetch-coord cache ls --json | jq -r 'select(.width > 4000) | .path'
              prefetch-coord cache ls --summary

            File names are digests of URLs. The images of a batch with their URLs:
            prefetch-coord export --format jsonl. --summary counts them by age, format and
            level; the age of an image is that of its bytes, in days of 24 hours.
            """)

    @Flag(help: "Print number and size of the images by age, format and level.")
    var summary = false

    @Flag(help: "Print one JSON object per line.")
    var json = false

    @OptionGroup(title: "Cache") var folder: CacheFolder

    func run() throws {
        if summary { return try summarize() }
        let disk = try folder.open()
        var isEmpty = true
        let unread = try folder.walk(disk) { entry in
            isEmpty = false
            Console.print(json ? entry.json.text : CacheEntryText.line(entry))
            return Console.takesMore
        }
        if isEmpty && unread == 0 { Console.note("there is no image in \(TerminalText.escaped(disk.directory))") }
        if unread > 0 { throw ExitCode(74) }
    }

    private func summarize() throws {
        let now = Int(time(nil))
        var summary = CacheSummary()
        let unread = try folder.walk(try folder.open()) { entry in
            summary.add(entry, now: now)
            return true
        }
        var sheet = summary.sheet
        if unread > 0 { sheet.exitCode = 74 }
        try sheet.print(asJSON: json)
    }
}

/// Number and size of the images of a cache: `cache ls --summary`.
struct CacheSummary: Record {
    private var total = CacheUsage()
    private var days: [Int: CacheUsage] = [:]
    private var formats: [String: CacheUsage] = [:]
    private var levels: [String: CacheUsage] = [:]

    /// * `now`: seconds since 1970.
    mutating func add(_ entry: CacheEntry, now: Int) {
        total.add(entry)
        // A date to come is today.
        days[max(0, now - entry.modifiedAt) / 86_400, default: CacheUsage()].add(entry)
        formats[entry.format.rawValue, default: CacheUsage()].add(entry)
        levels[entry.record?.level.name ?? "without a record", default: CacheUsage()].add(entry)
    }

    static let fields: [Field<CacheSummary>] =
        [.version] + CacheUsage.fields.map { $0.inside(\.total) } + [
            Field("days", \.byDay), Field("formats") { Members(sorted($0.formats)) },
            Field("levels") { Members(sorted($0.levels)) },
        ]

    var sheet: Sheet {
        var sheet = Sheet(self)
        sheet.add(
            table: [UsagePart(name: "all", usage: total)]
                + byDay.map { UsagePart(name: Wording.count($0.day, "day") + " old", usage: $0.usage) }
                + (Self.sorted(formats) + Self.sorted(levels)).map { UsagePart(name: $0.name, usage: $0.value) })
        return sheet
    }

    private var byDay: [DayUsage] { days.sorted { $0.key < $1.key }.map { DayUsage(day: $0.key, usage: $0.value) } }

    /// The largest first.
    private static func sorted(_ group: [String: CacheUsage]) -> [(name: String, value: CacheUsage)] {
        group.sorted { ($1.value.bytes, $0.key) < ($0.value.bytes, $1.key) }.map { (name: $0.key, value: $0.value) }
    }
}

private struct DayUsage: Record {
    let day: Int, usage: CacheUsage

    static let fields: [Field<DayUsage>] =
        [Field("day", about: "Age in days of 24 hours.", \.day)] + CacheUsage.fields.map { $0.inside(\.usage) }
}

/// A row of the table: some images of the cache.
private struct UsagePart: Record {
    let name: String, usage: CacheUsage

    static let fields: [Field<UsagePart>] =
        [.column("of the cache", \.name)] + CacheUsage.fields.map { $0.inside(\.usage) }
}

/// Which cache a command looks through.
struct CacheFolder: ParsableArguments {
    @Option(help: .folder("Cache folder. (default: PREFETCH_CACHE, or ./cache)"), completion: .directory)
    var cache: String?

    /// The cache, only for reading.
    func open() throws(PrefetchError) -> DiskCache {
        var options = CacheOptions()
        options.cache = cache
        return try options.openExisting()
    }

    /// Visits every image until `visit` returns false; names what cannot be read and returns how many those are.
    func walk(_ disk: DiskCache, _ visit: (CacheEntry) -> Bool) throws(WebImageError) -> Int {
        var unread = 0
        try disk.images.forEach(
            unreadable: { path, reason in
                unread += 1
                Console.note("\(TerminalText.escaped(path)): \(TerminalText.escaped(reason))")
            }, visit)
        return unread
    }
}
