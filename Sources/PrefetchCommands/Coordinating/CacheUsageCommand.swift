internal import ArgumentParser
internal import WebImage

/// `prefetch-coord cache du`: how much is in the cache.
struct CacheUsageCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "du",
        abstract: "Count the images of the cache and their bytes, by format.",
        usage: "prefetch-coord cache du [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache du --cache ./cache
              prefetch-coord cache du --json | jq .bytes

            Allocated bytes are what the files take of the disk, in whole blocks.
            """)

    @Flag(help: "One object of JSON.")
    var json = false

    @OptionGroup(title: "Where") var folder: CacheFolder

    func run() throws {
        var total = CacheUsage()
        var formats: [ImageFormat: CacheUsage] = [:]
        let unread = try folder.walk(try folder.open()) { entry in
            total.add(entry)
            formats[entry.format, default: CacheUsage()].add(entry)
            return true
        }
        let sorted = formats.sorted { ($1.value.bytes, $0.key.rawValue) < ($0.value.bytes, $1.key.rawValue) }
        if json {
            Console.print(
                JSONText.object(
                    [("v", .int(1))] + total.members + [
                        ("formats", .object(sorted.map { ($0.key.rawValue, .object($0.value.members)) }))
                    ]
                ).text)
        } else {
            Console.print(total.text)
            for (format, usage) in sorted { Console.print("  \(format.rawValue): \(usage.text)") }
        }
        if unread > 0 { throw ExitCode(74) }
    }
}
