internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache`: the images on disk. Needs no Redis.
struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Inspect, verify and clean the image cache.",
        discussion: """
            Examples:
              prefetch-coord cache stat --cache ./cache
              prefetch-coord cache path https://example.org/a.jpg
            """,
        subcommands: [
            CachePathCommand.self, CacheGetCommand.self, CacheListCommand.self,
            CacheStatCommand.self, CacheCollectCommand.self, CacheVerifyCommand.self, CachePutCommand.self,
            CacheExistsCommand.self, CacheRemoveCommand.self, CacheClearCommand.self,
        ])
}

/// Which cache, and how keys are made of URLs.
struct CacheOptions: ParsableArguments {
    @Option(help: .folder("Cache folder. (default: PREFETCH_CACHE, or ./cache)"), completion: .directory)
    var cache: String?

    @Option(help: .value("rule", "Cache key of a URL: url, without-query or s/REGEX/REPLACEMENT/."))
    var cacheKey = "url"

    func validate() throws {
        guard CacheKeyFilter(cacheKey) != nil else {
            throw ValidationError("--cache-key is url, without-query or s/regex/replacement/, not '\(cacheKey)'")
        }
    }

    var rule: CacheKeyRule { .filter(CacheKeyFilter(cacheKey) ?? .url) }

    /// Which folder.
    var directory: String { cache ?? getenv("PREFETCH_CACHE").map { String(cString: $0) } ?? "./cache" }

    /// The cache, only for reading.
    ///
    /// * `tiers`: what is looked up behind it.
    func open(_ tiers: ReadOnlyCacheOptions? = nil) throws(PrefetchError) -> DiskCache {
        let folder = directory
        guard access(folder, F_OK) == 0 else {
            throw PrefetchError(.notFound, "there is no folder \(folder)", hint: "name the cache: --cache DIR")
        }
        var configuration = DiskCache.Configuration()
        configuration.isReadOnly = true
        configuration.readOnlyDirectories = tiers?.directories ?? []
        do throws(WebImageError) {
            return try DiskCache(directory: folder, configuration: configuration)
        } catch {
            throw PrefetchError(
                .cacheUnavailable, error.message, hint: "name a cache that this user may read: --cache DIR")
        }
    }
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

            With - it prints one path per line, in order, and an empty line for a missing
            image. Exit code 66 if one is missing.
            """)

    @Argument(help: .url("URLs, or - to read one per line from standard input."))
    var urls: [String]

    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Cache") var options: CacheOptions
    @OptionGroup(title: "Cache") var readOnly: ReadOnlyCacheOptions

    func run() throws {
        let disk = try options.open(readOnly)
        var missing = 0
        func tell(_ url: String) {
            if let path = disk.existingPath(forKey: options.rule.key(for: url)) {
                Console.print(path)
            } else {
                missing += 1
                if urls == ["-"] {
                    Console.print("")
                } else {
                    Console.error("not in the cache: \(TerminalText.url(url))", hint: "")
                }
            }
        }
        try URLWords.forEach(urls, empty, tell)
        if missing > 0 { throw ExitCode(66) }
    }
}

/// `prefetch-coord cache get`: the bytes of an image.
struct CacheGetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Write a URL's image to standard output.",
        usage: "prefetch-coord cache get <url> [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache get https://example.org/a.jpg > a.jpg
            """)

    @Argument(help: "URL of the image.")
    var url: String

    @OptionGroup(title: "Cache") var options: CacheOptions
    @OptionGroup(title: "Cache") var readOnly: ReadOnlyCacheOptions

    func run() throws {
        let disk = try options.open(readOnly)
        guard let bytes = try disk.find(forKey: options.rule.key(for: url), atLeast: .none)?.bytes() else {
            throw PrefetchError(
                .notFound, "not in the cache: \(TerminalText.url(url))",
                hint: "the URL has to be as it was in the list, byte for byte; or give --cache-key as the batch had it")
        }
        if isatty(STDOUT_FILENO) == 1 {
            throw PrefetchError(
                .configuration, "an image is not text for a terminal", hint: "send it to a file: … > image")
        }
        Console.print(bytes)
    }
}
