internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache rm`: removes the images of URLs, or all.
struct CacheRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove the images of URLs, or every image.",
        usage: "prefetch-coord cache rm <url> ... | --all [--force] [--yes] [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache rm https://example.org/a.jpg
              prefetch-coord cache rm - < urls.txt
              prefetch-coord cache rm --all --cache ./cache

            A process that has such a file open can still read it. Exit code 66 if a URL has
            no image; the others are removed all the same.

            With --all, batches, lists and files that were moved aside stay. While a batch
            fetches into the cache, nothing is removed (exit code 75) unless --force is
            given.
            """)

    @Argument(help: .url("URLs, or - to read one per line from standard input."))
    var urls: [String] = []

    @Flag(help: "Remove every image.")
    var all = false

    @Flag(help: "With --all: also remove what a running batch has fetched.")
    var force = false

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Cache") var options: CacheOptions

    func validate() throws {
        guard urls.isEmpty == all else { throw ValidationError("give URLs, or --all") }
        guard all || (!force && !confirmation.yes) else { throw ValidationError("--force and --yes go with --all") }
    }

    func run() throws {
        let disk = try options.openForWriting()
        if all { return try removeAll(disk) }
        var removed = 0
        var missing = 0
        try URLWords.forEach(urls, empty) { url in
            if try disk.images.remove(CacheKey(try options.rule.key(for: url))) {
                removed += 1
            } else {
                missing += 1
                Console.note("not in the cache: \(TerminalText.url(url))")
            }
        }
        Console.note("removed \(Wording.count(removed, "image"))")
        if missing > 0 { throw ExitCode(66) }
    }

    private func removeAll(_ disk: DiskCache) throws {
        if !force, try disk.sweep.hasProtectedImages() {
            throw PrefetchError(
                .stopped, "a running batch fetches into \(TerminalText.escaped(disk.directory)); nothing was removed",
                hint: "when it has ended, the same command again; or with --force")
        }
        if !confirmation.yes {
            var usage = CacheUsage()
            var folder = CacheFolder()
            folder.cache = options.cache
            _ = try folder.walk(disk) { entry in
                usage.add(entry)
                return true
            }
            if usage.count > 0 {
                try confirmation.ask(
                    "remove \(usage.text), everything in \(TerminalText.escaped(disk.directory))", "cache rm --all")
            }
        }
        Console.note("removed \(Wording.count(try disk.images.removeAll(), "image"))")
    }
}
