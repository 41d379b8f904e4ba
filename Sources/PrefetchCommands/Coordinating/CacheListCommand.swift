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
            Console.print(
                json ? JSONText.object(CacheEntryText.members(entry)).text : CacheEntryText.line(entry))
            return !Console.isOutputClosed && Console.outputError == nil
        }
        if isEmpty && unread == 0 { Console.note("there is no image in \(TerminalText.escaped(disk.directory))") }
        if unread > 0 { throw ExitCode(74) }
    }

    private func summarize() throws {
        let now = Int(time(nil))
        var total = CacheUsage()
        var days: [Int: CacheUsage] = [:]
        var formats: [String: CacheUsage] = [:]
        var levels: [String: CacheUsage] = [:]
        let unread = try folder.walk(try folder.open()) { entry in
            total.add(entry)
            // A date to come is today.
            days[max(0, now - entry.modifiedAt) / 86_400, default: CacheUsage()].add(entry)
            formats[entry.format.rawValue, default: CacheUsage()].add(entry)
            levels[entry.record?.level.name ?? "without a record", default: CacheUsage()].add(entry)
            return true
        }
        let sortedDays = days.sorted { $0.key < $1.key }
        let groups = [("formats", Self.sorted(formats)), ("levels", Self.sorted(levels))]
        if json {
            let rows = sortedDays.map { JSONText.object([("day", .int($0.key))] + $0.value.members) }
            let objects = groups.map { name, group in
                (name, JSONText.object(group.map { ($0.key, .object($0.value.members)) }))
            }
            Console.print(JSONText.object([("v", .int(1))] + total.members + [("days", .array(rows))] + objects).text)
        } else {
            Console.print(total.text)
            for (day, usage) in sortedDays { Console.print("  \(day) day\(day == 1 ? "" : "s") old: \(usage.text)") }
            for (_, group) in groups { for (name, usage) in group { Console.print("  \(name): \(usage.text)") } }
        }
        if unread > 0 { throw ExitCode(74) }
    }

    /// The largest first.
    private static func sorted(_ group: [String: CacheUsage]) -> [(key: String, value: CacheUsage)] {
        group.sorted { ($1.value.bytes, $0.key) < ($0.value.bytes, $1.key) }
    }
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
