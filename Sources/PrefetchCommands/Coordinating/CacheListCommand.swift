internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache ls`: every image of the cache.
struct CacheListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List the images of the cache.",
        usage: "prefetch-coord cache ls [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache ls --cache ./cache
              prefetch-coord cache ls --json | jq -r 'select(.width > 4000) | .path'

            File names are digests of keys; the key is printed only if the cache records
            it. The images of a batch: prefetch-coord export --to jsonl.
            """)

    @Flag(help: "Print one JSON object per line.")
    var json = false

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Cache") var folder: CacheFolder

    func run() throws {
        let disk = try folder.open()
        var isEmpty = true
        let unread = try folder.walk(disk) { entry in
            isEmpty = false
            let key = disk.images.validators(of: entry)?.key
            if json {
                Console.print(
                    JSONText.object(CacheEntryText.members(entry) + [("key", key.map { .url($0) } ?? .null)]).text)
            } else {
                Console.print(CacheEntryText.line(entry) + (key.map { ", \(TerminalText.url($0))" } ?? ""))
            }
            return !Console.isOutputClosed && Console.outputError == nil
        }
        if isEmpty && unread == 0 { Console.note("there is no image in \(TerminalText.escaped(disk.directory))") }
        if unread > 0 { throw ExitCode(74) }
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
