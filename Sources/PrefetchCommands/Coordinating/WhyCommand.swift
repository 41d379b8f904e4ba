internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord why`: what is known of a URL, or what the open URLs of a batch wait for.
struct WhyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Explain a URL, or what a batch is waiting for.",
        usage: """
            prefetch-coord why <url> [<options>]
            prefetch-coord why --oldest [<batch>] [<options>]
            """,
        discussion: """
            Examples:
              prefetch-coord why https://example.org/a.jpg --cache ./cache
              prefetch-coord why https://example.org/a.jpg --redis redis://host --json
              prefetch-coord why --oldest urls-7f3a

            Prints blacklist entry, cache file and the newest result of a URL, or of a line
            of JSON as in a list, with the command that helps. If the image is not in --cache, it names the machine that
            has it. Exit code 66 if nothing is known about the URL.

            With --oldest it lists the open URLs of a running batch that were taken first,
            and what each is waiting for: its transfer, its host, a slot, the next try.
            """)

    @Argument(
        help: ArgumentHelp(
            "URL exactly as in the list; with --oldest a batch. (default: the newest)",
            valueName: "url"))
    var subject: String?

    @Flag(help: "List the oldest open URLs of a batch.")
    var oldest = false

    @Option(help: .count("How many of the newest batches to search."))
    var batches = 20

    @OptionGroup var key: SettingOptions<KeyRules>

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func validate() throws {
        if subject == nil && !oldest { throw ValidationError("Missing expected argument '<url>'") }
        if oldest && (batches != 20 || !key.given.isEmpty) {
            throw ValidationError("--batches and --cache-key are about a URL, --oldest is about a batch")
        }
        guard batches >= 0 else { throw ValidationError("--batches is a number from 0 on") }
    }

    func run() async throws {
        guard !oldest, let subject else { return try await tellOldest() }
        let (url, settings) = URLLines.given(subject)
        try await Session.with(location.record, readsOnly: true) { session in
            let folder = location.cacheFolder
            let cache = if let folder { try CacheOpening.forReading(folder) } else { nil as DiskCache? }
            let facts = try await URLFacts.read(
                url, settings, rule: .filter(key.record.cacheKey), queue: session.queue, cache: cache,
                batches: batches)
            for id in facts.unread {
                Console.note(
                    "note: what became of each line of \(TerminalText.escaped(id)) is not known without its list, which cannot be read here"
                )
            }
            let text = URLFactsText(url: url, facts: facts, cache: folder, queue: session.queue.catalog.queueName)
            guard facts.isKnown || json else {
                throw PrefetchError(
                    .notFound, "nothing is known of \(TerminalText.url(url)): \(text.unknown)",
                    hint: folder == nil
                        ? "of URLs that have an image the cache knows: --cache DIR; the URL has to be as it was in the list"
                        : "the URL has to be as it was in the list, byte for byte; or give another --queue or --cache")
            }
            var sheet = Sheet(text)
            sheet.add(text.lines)
            sheet.notes = text.advice(location.words)
            if !facts.isKnown { sheet.exitCode = 66 }
            try sheet.print(asJSON: json)
        }
    }

    private func tellOldest() async throws {
        try await Session.with(location.record, readsOnly: true) { session in
            let id = try await MeantBatch.resolve(
                subject, "why --oldest", location.words, in: session.queue)
            guard let status = try await session.status(of: id) else {
                throw PrefetchError(.notFound, "batch '\(id)' no longer exists")
            }
            let urls = try await session.queue.openURLs.oldest(of: status)
            var sheet = Sheet(OldestAnswer(batch: id, oldest: urls))
            sheet.add(urls.map { OpenURLText.line($0, at: status.at) })
            if urls.isEmpty { sheet.add("no URL of \(TerminalText.escaped(id)) is open") }
            try sheet.print(asJSON: json)
        }
    }
}
