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
              grep tracker urls.txt | prefetch-coord blacklist add -

            Entries added by hand have no reason and never expire; they stay until they are
            removed, or requested again with --retry-failed.
            """)

    @Argument(help: .url("URLs as in the lists, or - to read one per line from standard input."))
    var urls: [String]

    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Redis") var location: RedisLocation

    func run() async throws {
        let source = BlacklistSource(urls)
        try source.check()
        try await Session.with(location) { session in try await source.add(to: session.queue, empty) }
    }
}

/// `prefetch-coord blacklist import`: a whole list at once.
struct BlacklistImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Add the URLs of a file to the blacklist.",
        usage: "prefetch-coord blacklist import <file> [<options>]",
        discussion: """
            Examples:
              prefetch-coord blacklist import failed.txt --cache ./cache
              zcat failed.gz | prefetch-coord blacklist import -

            One URL per line, as blacklist export writes them; they never expire. Lines
            that are not URLs are printed and skipped; exit code 65 if no line is one.
            """)

    @Argument(help: .file("The list, a pipe, or - for standard input."))
    var file: String

    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Redis") var location: RedisLocation

    func validate() throws {
        if file.isEmpty { throw ValidationError("import needs a file, or - for standard input") }
    }

    func run() async throws {
        let source = BlacklistSource.lines(file)
        try source.check()
        try await Session.with(location) { session in try await source.add(to: session.queue, empty) }
    }
}

/// `prefetch-coord blacklist rm`: takes URLs off the list.
struct BlacklistRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove URLs from the blacklist.",
        usage: "prefetch-coord blacklist rm <url> ... [<options>]",
        discussion: """
            Examples:
              prefetch-coord blacklist rm https://example.org/a.jpg --cache ./cache
              prefetch-coord blacklist list --json \\
                | jq -r 'select(.http_status == 503) | .url' | prefetch-coord blacklist rm -

            The next batch requests them again.
            """)

    @Argument(help: .url("URLs as in the lists, or - to read one per line from standard input."))
    var urls: [String]

    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Redis") var location: RedisLocation

    func run() async throws {
        let source = BlacklistSource(urls)
        try source.check()
        try await Session.with(location) { session in try await source.remove(from: session.queue, empty) }
    }
}

/// Where URLs for the list come from.
enum BlacklistSource: Sendable {
    /// The words of a command.
    case words([String])
    /// A file, or `-`.
    case lines(String)

    private static let mostNamed = 100

    init(_ words: [String]) {
        self = words == ["-"] ? .lines("-") : .words(words)
    }

    /// Looks whether there is anything to read, before anybody asks Redis.
    /// - Throws: `notFound`, `unreadableList`.
    func check() throws(PrefetchError) {
        guard case .lines(let path) = self else { return }
        if path == "-" {
            guard isatty(STDIN_FILENO) == 1 else { return }
            throw PrefetchError(
                .unreadableList, "standard input is a terminal", hint: "pipe URLs into it: cat urls.txt | …")
        }
        guard access(path, R_OK) != 0 else { return }
        let kind: PrefetchError.Kind = errno == ENOENT ? .notFound : .unreadableList
        throw PrefetchError(
            kind, "cannot read \(path): \(String(cString: strerror(errno)))",
            hint: "give a text file with one URL a line, or - for standard input")
    }

    /// Adds them; says how many, and what is no URL.
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

    /// Takes them off; says how many.
    /// - Throws: `unreadableList` where there is no line and there has to be one.
    func remove(from queue: PrefetchQueue, _ empty: EmptyListOptions) async throws(PrefetchError) {
        var (all, removed) = (0, 0)
        try await forEachGroup { entries async throws(PrefetchError) in
            all += entries.count
            // Whatever somebody has put there by hand can be taken off, be it a URL or not.
            do throws(RedisError) { removed += try await queue.failedURLs.remove(entries.map(\.url)) } catch {
                throw PrefetchError(error)
            }
        }
        try check(empty, all)
        let text = "removed \(Wording.count(removed, "URL"))"
        Console.print(all > removed ? "\(text); not on the list: \(Wording.count(all - removed))" : text)
    }

    private func check(_ empty: EmptyListOptions, _ count: Int) throws(PrefetchError) {
        if case .lines(let path) = self { try empty.check(count, of: ListFile.name(of: path)) }
    }

    private func place(_ number: Int) -> String {
        if case .words = self { "argument \(number)" } else { "line \(number)" }
    }

    private func forEachGroup(
        _ body: ([PrefetchJob.Entry]) async throws(PrefetchError) -> Void
    ) async throws(PrefetchError) {
        switch self {
        case .words(let words): try await body(URLLines.entries(words))
        case .lines(let path):
            try await URLLines.forEachGroup(path: path, waiting: { GivenList.tellWaiting(path) }, body)
        }
    }
}
