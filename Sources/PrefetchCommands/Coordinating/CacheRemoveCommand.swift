internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache rm`: removes the images of URLs.
struct CacheRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove the images of URLs.",
        usage: "prefetch-coord cache rm <url> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache rm https://example.org/a.jpg
              prefetch-coord cache rm - < urls.txt

            A process that has such a file open can still read it. Exit code 66 if a URL has
            no image; the others are removed all the same.
            """)

    @Argument(help: .url("URLs, or - to read one per line from standard input."))
    var urls: [String]

    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Cache") var options: CacheOptions

    func run() throws {
        let disk = try options.openForWriting()
        var removed = 0
        var missing = 0
        try URLWords.forEach(urls, empty) { url in
            if try disk.images.remove(CacheKey(options.rule.key(for: url))) {
                removed += 1
            } else {
                missing += 1
                Console.note("not in the cache: \(TerminalText.url(url))")
            }
        }
        Console.note("removed \(Wording.count(removed, "image"))")
        if missing > 0 { throw ExitCode(66) }
    }
}
