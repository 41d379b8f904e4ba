internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache`: the images on disk. Needs no Redis.
struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Look into the cache of images.",
        discussion: """
            Examples:
              prefetch-coord cache du --cache ./cache
              prefetch-coord cache path https://example.org/a.jpg
            """,
        subcommands: [
            CachePathCommand.self, CacheGetCommand.self, CacheListCommand.self, CacheUsageCommand.self,
            CacheStatCommand.self, CacheCollectCommand.self, CacheVerifyCommand.self,
        ])
}

/// Which cache, and how keys are made of URLs.
struct CacheOptions: ParsableArguments {
    @Option(help: "The cache folder; PREFETCH_CACHE, or ./cache, by default.")
    var cache: String?

    @Option(help: "Key in the cache: url, without-query, s/regex/replacement/.")
    var cacheKey = "url"

    func validate() throws {
        guard CacheKeyRule(cacheKey) != nil else {
            throw ValidationError("--cache-key is url, without-query or s/regex/replacement/, not '\(cacheKey)'")
        }
    }

    var rule: CacheKeyRule { CacheKeyRule(cacheKey) ?? .url }

    /// The cache, only for reading.
    func open() throws(PrefetchError) -> DiskCache {
        let named = getenv("PREFETCH_CACHE").map { String(cString: $0) }
        let folder = cache ?? named ?? "./cache"
        guard access(folder, F_OK) == 0 else {
            throw PrefetchError(.notFound, "there is no folder \(folder)", hint: "name the cache: --cache DIR")
        }
        var configuration = DiskCache.Configuration()
        configuration.isReadOnly = true
        do throws(WebImageError) {
            return try DiskCache(directory: folder, configuration: configuration)
        } catch {
            throw PrefetchError(
                .cacheUnavailable, error.message, hint: "name a cache that this user may read: --cache DIR")
        }
    }
}

/// `prefetch-coord cache path`: where the image of a URL is.
struct CachePathCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "path",
        abstract: "Print the path of the image of a URL.",
        usage: "prefetch-coord cache path <url> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache path https://example.org/a.jpg
              prefetch-coord cache path - < urls.txt

            With - one path a line, in order; an empty line where there is no image.
            Exit code 66 where one is missing.
            """)

    @Argument(help: "URLs, or - for one a line on standard input.")
    var urls: [String]

    @OptionGroup(title: "Where") var options: CacheOptions

    func run() throws {
        let disk = try options.open()
        var missing = 0
        func tell(_ url: String) {
            let key = options.rule.key(for: url)
            if disk.containsData(forKey: key) {
                Console.print(disk.cachePath(forKey: key))
            } else {
                missing += 1
                if urls == ["-"] {
                    Console.print("")
                } else {
                    Console.error("not in the cache: \(TerminalText.url(url))", hint: "")
                }
            }
        }
        if urls == ["-"] {
            while let line = readLine() {
                let url = line.trimmingBlanks
                if !url.isEmpty && !url.hasPrefix("#") { tell(url) }
            }
        } else {
            for url in urls { tell(url) }
        }
        if missing > 0 { throw ExitCode(66) }
    }
}

/// `prefetch-coord cache get`: the bytes of an image.
struct CacheGetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Write the image of a URL to standard output.",
        usage: "prefetch-coord cache get <url> [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache get https://example.org/a.jpg > a.jpg
            """)

    @Argument(help: "The URL.")
    var url: String

    @OptionGroup(title: "Where") var options: CacheOptions

    func run() throws {
        let disk = try options.open()
        guard let bytes = try disk.data(forKey: options.rule.key(for: url)) else {
            throw PrefetchError(
                .notFound, "not in the cache: \(TerminalText.url(url))",
                hint: "the URL has to be as it was in the list, byte for byte; or give --cache-key as the batch had it")
        }
        if isatty(STDOUT_FILENO) == 1 {
            throw PrefetchError(
                .configuration, "an image is no text for a terminal", hint: "send it to a file: … > image")
        }
        Console.print(bytes)
    }
}

/// `prefetch-coord cache verify`: every file against its record.
struct CacheVerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Read every file of the cache and compare it with its record.",
        usage: "prefetch-coord cache verify [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache verify --cache ./cache
              prefetch-coord cache verify --decode --json

            Exit code 1 where a file is damaged. Nothing is changed.
            """)

    @Flag(help: "Decode every image again, too.")
    var decode = false

    @Flag(help: "One object of JSON.")
    var json = false

    @OptionGroup(title: "Where") var options: CacheOptions

    func run() throws {
        let disk = try options.open()
        let coder = ImageCoder()
        var damaged: [CacheFinding] = []
        var unproved = 0
        let checked = try disk.verify(
            check: { entry throws(WebImageError) in
                guard decode else { return nil }
                let bytes = try entry.bytes()
                do throws(WebImageError) {
                    _ = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                        try coder.verify(bytes, level: entry.record?.level ?? .structure)
                    }
                    return nil
                } catch {
                    return error.message
                }
            },
            report: { finding in
                if finding.isDamaged { damaged.append(finding) } else { unproved += 1 }
            })
        if json {
            Console.print(
                JSONText.object([
                    ("v", .int(1)), ("checked", .int(checked)), ("damaged", .array(damaged.map { .string($0.path) })),
                    ("without_record", .int(unproved)),
                ]).text)
        } else {
            for finding in damaged { Console.print("damaged: \(finding.path): \(Self.text(finding.problem))") }
            Console.print(
                "\(Wording.count(checked)) files, \(Wording.count(damaged.count)) damaged"
                    + (unproved > 0 ? ", \(Wording.count(unproved)) without a record (verified at their next hit)" : "")
            )
        }
        if !damaged.isEmpty { throw ExitCode(1) }
    }

    private static func text(_ problem: CacheFinding.Problem) -> String {
        switch problem {
        case .size(let expected, let found): "\(found) bytes, its record says \(expected)"
        case .digest: "its bytes have another SHA-256 than its record"
        case .image(let what), .unreadable(let what): TerminalText.escaped(what)
        case .noRecord: "no record"
        case .level(let level): "verified only at \(level.name)"
        }
    }
}

extension String {
    /// Without blanks around it, as the reader of lists takes a line.
    fileprivate var trimmingBlanks: String {
        var text = self[...]
        while let first = text.first, first == " " || first == "\t" || first == "\r" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" || last == "\r" { text.removeLast() }
        return String(text)
    }
}
