internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import Redis

/// `prefetch-coord blacklist add`: puts URLs onto the list by hand.
struct BlacklistAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add URLs to the blacklist.",
        usage: "prefetch-coord blacklist add <url> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord blacklist add https://example.org/a.jpg --cache ./cache
              prefetch-coord blacklist add - < opted-out.txt

            Entries added by hand have no reason, do not lapse, and stay until they are
            removed, or requested again with --retry-failed. Lines that are not URLs are
            printed and skipped; exit code 65 if no line is one.
            """)

    @Argument(help: .url("URLs as in the lists, or - to read one per line from standard input."))
    var urls: [String]

    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func run() async throws {
        let source = BlacklistSource(urls)
        try source.check()
        try await Session.with(location.record) { session in try await source.add(to: session.queue, empty) }
    }
}

/// `prefetch-coord blacklist rm`: takes URLs off the list.
struct BlacklistRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove URLs from the blacklist.",
        usage: """
            prefetch-coord blacklist rm <url> ... [<options>]
            prefetch-coord blacklist rm --all [--yes] [<options>]
            """,
        discussion: """
            Examples:
              prefetch-coord blacklist rm https://example.org/a.jpg --cache ./cache
              prefetch-coord blacklist list --json \\
                | jq -r 'select(.http_status == 503) | .url' | prefetch-coord blacklist rm -

            The next batch requests them again.
            """)

    @Argument(help: .url("URLs as in the lists, or - to read one per line from standard input."))
    var urls: [String] = []

    @Flag(help: "Remove all URLs.")
    var all = false

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func validate() throws {
        if all && !urls.isEmpty { throw ValidationError("--all removes all URLs; it takes none") }
        if !all && urls.isEmpty { throw ValidationError("Missing expected argument '<url>'") }
    }

    func run() async throws {
        guard !all else {
            return try await Session.with(location.record) { session in try await removeAll(session.queue) }
        }
        let source = BlacklistSource(urls)
        try source.check()
        try await Session.with(location.record) { session in try await source.remove(from: session.queue, empty) }
    }

    private func removeAll(_ queue: PrefetchQueue) async throws {
        let count = try await queue.failedURLs.count()
        if count > 0 {
            try confirmation.ask("remove \(Wording.count(count, "URL")), all of the blacklist", "blacklist rm")
        }
        // Also where it seems empty: what stands beside members that were removed by hand goes too.
        try await queue.failedURLs.removeAll()
        Console.print(count == 0 ? "the blacklist is empty" : "removed \(Wording.count(count, "URL"))")
    }
}

/// Where URLs for the list come from.
enum BlacklistSource: Sendable {
    /// The words of a command.
    case words([String])
    /// Standard input.
    case lines

    private static let mostNamed = 100

    init(_ words: [String]) {
        self = words == ["-"] ? .lines : .words(words)
    }

    /// Checks, before a request to Redis, that standard input can be read.
    /// - Throws: `unreadableList`.
    func check() throws(PrefetchError) {
        guard case .lines = self, Console.isTerminal(STDIN_FILENO) else { return }
        throw PrefetchError(
            .unreadableList, "standard input is a terminal", hint: "pipe URLs into it: cat urls.txt | …")
    }

    /// Adds the URLs; prints how many, and the lines that are no URLs.
    /// - Throws: `unreadableList` where none is a URL, or there is no line and there has to be one.
    func add(to queue: PrefetchQueue, _ empty: EmptyListOptions) async throws(PrefetchError) {
        var (urls, new, bad) = (0, 0, 0)
        try await forEachGroup { entries async throws(PrefetchError) in
            for entry in entries where entry.isInvalid {
                bad += 1
                if bad <= Self.mostNamed {
                    Console.note(
                        "\(place(entry.line)) is not a URL: \(TerminalText.escaped(String(entry.url.prefix(200))))")
                }
            }
            let valid = entries.filter { !$0.isInvalid }.map(\.url)
            urls += valid.count
            do throws(RedisError) { new += try await queue.failedURLs.add(valid) } catch { throw PrefetchError(error) }
        }
        if bad > Self.mostNamed {
            Console.note("and \(Wording.count(bad - Self.mostNamed, "more line")) that are not URLs")
        }
        try check(empty, urls + bad)
        if bad > 0 && urls == 0 {
            throw PrefetchError(
                .unreadableList, "no URL among \(Wording.count(bad, "line")), nothing was added",
                hint: "one URL a line, each with its scheme: https://example.org/a.jpg; of NDJSON: jq -r .url")
        }
        var text = "added \(Wording.count(new, "URL"))"
        if urls > new { text += "; on the list already: \(Wording.count(urls - new))" }
        if bad > 0 { text += "; no URL: \(Wording.count(bad))" }
        Console.print(text)
    }

    /// Removes the URLs; prints how many.
    /// - Throws: `unreadableList` where there is no line and there has to be one.
    func remove(from queue: PrefetchQueue, _ empty: EmptyListOptions) async throws(PrefetchError) {
        var (all, removed) = (0, 0)
        try await forEachGroup { entries async throws(PrefetchError) in
            all += entries.count
            // Any stored entry can be removed, even a malformed one.
            do throws(RedisError) { removed += try await queue.failedURLs.remove(entries.map(\.url)) } catch {
                throw PrefetchError(error)
            }
        }
        try check(empty, all)
        let text = "removed \(Wording.count(removed, "URL"))"
        Console.print(all > removed ? "\(text); not on the list: \(Wording.count(all - removed))" : text)
    }

    private func check(_ empty: EmptyListOptions, _ count: Int) throws(PrefetchError) {
        if case .lines = self { try empty.check(count, of: ListFile.name(of: "-")) }
    }

    private func place(_ number: Int) -> String {
        if case .words = self { "argument \(number)" } else { "line \(number)" }
    }

    private func forEachGroup(
        _ body: ([PrefetchJob.Entry]) async throws(PrefetchError) -> Void
    ) async throws(PrefetchError) {
        switch self {
        case .words(let words): try await body(URLLines.entries(words))
        case .lines: try await URLLines.forEachGroup(path: "-", body)
        }
    }
}
