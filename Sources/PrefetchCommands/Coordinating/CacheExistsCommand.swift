internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache exists`: which URLs have no image.
struct CacheExistsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exists",
        abstract: "Tell which URLs have no image in the cache.",
        usage: "prefetch-coord cache exists <url> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache exists https://example.org/a.jpg && echo yes
              prefetch-coord cache exists - < urls.txt > missing.txt

            Prints the URLs that are not there, so that the output is a list to fetch.
            Exit code 0 where all are there, 1 where one is not.
            """)

    @Argument(help: "URLs, or - for one a line on standard input.")
    var urls: [String]

    @Flag(help: "An object of JSON a URL, also for those that are there.")
    var json = false

    @OptionGroup(title: "Lists") var empty: EmptyListOptions
    @OptionGroup(title: "Where") var options: CacheOptions
    @OptionGroup(title: "Where") var readOnly: ReadOnlyCacheOptions

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
