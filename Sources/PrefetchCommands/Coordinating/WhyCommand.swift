internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord why`: what is known of a URL.
struct WhyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Tell what is known of a URL: failed list, cache, newest batches.",
        usage: "prefetch-coord why <url> [<options>]",
        discussion: """
            Examples:
              prefetch-coord why https://example.org/a.jpg --cache ./cache
              prefetch-coord why https://example.org/a.jpg --redis redis://host --json

            Where the image is not in --cache, the newest batch that has one says on which
            machine it is. The lists of batches are read for that, and where they keep no
            details of what they skipped (--keep-details). Exit code 66 where nothing is
            known.
            """)

    @Argument(help: "The URL as it stands in a list, byte for byte.")
    var url: String

    @Option(help: "How many of the newest batches are looked through.")
    var batches = 20

    @Option(help: "Key in the cache: url, without-query, s/regex/replacement/.")
    var cacheKey = "url"

    @Option(help: "The list a batch was submitted from, where it is elsewhere now.", completion: .file())
    var list: String?

    @Flag(help: "One object of JSON.")
    var json = false

    @OptionGroup(title: "Secrets") var secrets: SecretOptions
    @OptionGroup(title: "Where") var location: RedisLocation

    func validate() throws {
        guard batches >= 0 else { throw ValidationError("--batches is a number from 0 on") }
        guard CacheKeyRule(cacheKey) != nil else {
            throw ValidationError("--cache-key is url, without-query or s/regex/replacement/, not '\(cacheKey)'")
        }
    }

    func run() async throws {
        let key = (CacheKeyRule(cacheKey) ?? .url).key(for: url)
        let list = try GivenList.repeatable(list)
        try await Session.with(location, looks: true) { session in
            let folder = location.cacheFolder
            let cache = if let folder { try CacheOpening.forReading(folder) } else { nil as DiskCache? }
            let facts = try await URLFacts.read(
                url, key: key, queue: session.queue, cache: cache, batches: batches, listPath: list)
            for id in facts.unread {
                Console.note(
                    "note: what became of each line of \(TerminalText.escaped(id)) is not known without its list, which cannot be read: --list FILE"
                )
            }
            let text = URLFactsText(url: url, facts: facts, cache: folder, queue: session.queue.catalog.queueName)
            if json {
                Console.print(text.object.text)
                guard facts.isKnown else { throw ExitCode(66) }
                return
            }
            guard facts.isKnown else {
                throw PrefetchError(
                    .notFound, "nothing is known of \(TerminalText.url(url)): \(text.unknown)",
                    hint: folder == nil
                        ? "of URLs that have an image the cache knows: --cache DIR; the URL has to be as it was in the list"
                        : "the URL has to be as it was in the list, byte for byte; or give another --queue or --cache")
            }
            for line in text.lines { Console.print(line) }
            for line in text.advice(location.words) { Console.note(line) }
        }
    }
}
