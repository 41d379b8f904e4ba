internal import ArgumentParser
internal import Glibc
internal import WebImage

/// `prefetch-coord cache stat`: what is in the cache, and how old it is.
struct CacheStatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stat",
        abstract: "Print number and size of images by age, format and level.",
        usage: "prefetch-coord cache stat [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache stat --cache ./cache
              prefetch-coord cache stat --json | jq '.days[] | select(.day >= 7)'

            The age of an image is that of its bytes, in days of 24 hours. Bytes on disk are
            whole blocks.
            """)

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup(title: "Cache") var folder: CacheFolder

    func run() throws {
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
