internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache exists`: which URLs have no image.
struct CacheExistsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exists",
        abstract: "Print the URLs that have no image in the cache.",
        usage: "prefetch-coord cache exists <url> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache exists https://example.org/a.jpg && echo yes
              prefetch-coord cache exists - < urls.txt > missing.txt

            The output is a list to fetch. Exit code 0 if all images are there, 1 if one is
            missing.
            """)

    @Argument(help: .url("URLs, or - to read one per line from standard input."))
    var urls: [String]

    @Flag(help: "Print one JSON object per URL, whether its image is there or not.")
    var json = false

    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Cache") var options: CacheOptions
    @OptionGroup(title: "Cache") var readOnly: ReadOnlyCacheOptions

    func run() throws {
        let disk = try options.open(readOnly)
        var isComplete = true
        try URLWords.forEach(urls, empty) { url in
            let isThere = disk.existingPath(forKey: options.rule.key(for: url)) != nil
            if !isThere { isComplete = false }
            if json {
                Console.print(JSONText.object([("url", .url(url)), ("exists", .bool(isThere))]).text)
            } else if !isThere {
                Console.print(TerminalText.url(url))
            }
        }
        if !isComplete { throw ExitCode(1) }
    }
}
