internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache`: the images on disk. Needs no Redis.
struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Inspect, verify, clean and fill the image cache.",
        discussion: """
            Examples:
              prefetch-coord cache ls --summary --cache ./cache
              prefetch-coord cache path https://example.org/a.jpg
            """,
        subcommands: [
            CachePathCommand.self, CacheListCommand.self, CacheVerifyCommand.self, CacheCollectCommand.self,
            CacheRemoveCommand.self, ImportCommand.self,
        ])
}

/// Which cache, and how keys are made of URLs.
struct CacheOptions: ParsableArguments {
    @Option(help: .folder("Cache folder. (default: PREFETCH_CACHE, or ./cache)"), completion: .directory)
    var cache: String?

    @OptionGroup private var key: SettingOptions<KeyRules>

    var rule: CacheKeyRule { .filter(key.record.cacheKey) }

    /// Which folder.
    var directory: String { cache ?? getenv("PREFETCH_CACHE").map { String(cString: $0) } ?? "./cache" }

    /// The cache, only for reading.
    ///
    /// * `tiers`: what is looked up behind it.
    func open(_ tiers: SettingOptions<LowerCaches>? = nil) throws(PrefetchError) -> DiskCache {
        try CacheOpening.forReading(directory, tiers?.readOnlyCaches ?? [])
    }
}

extension CacheOptions: SettingHolder {
    static var groups: [SettingRows] { SettingOptions<KeyRules>.groups }
}

extension CacheOptions {
    /// The cache, only for reading; not a folder that is none: of that nothing could be said, and it would sound well.
    func openExisting() throws(PrefetchError) -> DiskCache {
        let disk = try open()
        guard access("\(directory)/v1", F_OK) == 0 else {
            throw PrefetchError(
                .notFound, "there is no cache in \(TerminalText.escaped(directory))",
                hint: "name the cache: --cache DIR")
        }
        return disk
    }
}

/// `prefetch-coord cache path`: where the image of a URL is.
struct CachePathCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "path",
        abstract: "Print the path of a URL's image.",
        usage: "prefetch-coord cache path <url> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache path https://example.org/a.jpg
              prefetch-coord cache path - < urls.txt
              prefetch-coord cache path --missing - < urls.txt > missing.txt

            With - it prints one path per line, in order, and an empty line for a missing
            image; with --missing the URLs without an image, a list to fetch. Exit code 66
            if an image is missing. A line of JSON, as in a list, is found with what its
            headers and mirrors have given.
            """)

    @Argument(help: .url("URLs, or - to read one per line from standard input."))
    var urls: [String]

    @Flag(help: "Print the URLs that have no image, not the paths.")
    var missing = false

    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Cache") var options: CacheOptions
    @OptionGroup(title: "Cache") var readOnly: SettingOptions<LowerCaches>

    func run() throws {
        let disk = try options.open(readOnly)
        var isComplete = true
        func tell(_ url: String) {
            let line = URLLines.given(url)
            if let key = try? options.rule.key(for: line.url, line.settings), let path = disk.existingPath(forKey: key)
            {
                if !missing { Console.print(path) }
            } else {
                isComplete = false
                if missing {
                    Console.print(TerminalText.url(url))
                } else if urls == ["-"] {
                    Console.print("")
                } else {
                    Console.error("not in the cache: \(TerminalText.url(url))", hint: "")
                }
            }
        }
        try URLWords.forEach(urls, empty, tell)
        if !isComplete { throw ExitCode(66) }
    }
}

extension CacheOptions {
    /// The cache for a command that changes it: it has to be there.
    func openForWriting() throws(PrefetchError) -> DiskCache {
        var folder = CacheFolder()
        folder.cache = cache
        return try folder.openForRemoving(.modificationDate)
    }
}
