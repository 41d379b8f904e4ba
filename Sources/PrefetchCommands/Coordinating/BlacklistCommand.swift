internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord blacklist`: the list of failed URLs, which no batch asks the network for without `--retry-failed`.
struct BlacklistCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "blacklist",
        abstract: "List and change the URLs that are not requested again.",
        discussion: """
            Examples:
              prefetch-coord blacklist --cache ./cache
              prefetch-coord blacklist rm https://example.org/a.jpg
              prefetch-coord blacklist export failed.txt

            URLs on the blacklist end as blacklisted, without a request, unless a batch has
            --retry-failed. Which failures are added: --blacklist of run and submit.
            """,
        subcommands: [
            BlacklistListCommand.self, BlacklistAddCommand.self, BlacklistRemoveCommand.self,
            BlacklistClearCommand.self, BlacklistExportCommand.self, BlacklistImportCommand.self,
            BlacklistSetCommand.self,
        ],
        defaultSubcommand: BlacklistListCommand.self)
}

/// `prefetch-coord blacklist list`: what is on it, and why.
struct BlacklistListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the blacklisted URLs and their reasons.",
        usage: "prefetch-coord blacklist [list] [<options>]",
        discussion: """
            Examples:
              prefetch-coord blacklist --cache ./cache
              prefetch-coord blacklist list --json | jq -r .url
            """)

    @Flag(help: "Print one JSON object per line.")
    var json = false

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: RedisLocation

    func run() async throws {
        try await Session.with(location) { session in
            let count = try await BlacklistLines.write(session.queue) { failed in
                json ? FailedURLText.object(failed).text : FailedURLText.line(failed)
            } to: { text in
                Console.print(text)
                return !Console.isOutputClosed && Console.outputError == nil
            }
            if count == 0 { Console.note("the blacklist is empty") }
        }
    }
}

/// `prefetch-coord blacklist clear`: takes everything off.
struct BlacklistClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear",
        abstract: "Remove all URLs from the blacklist.",
        usage: "prefetch-coord blacklist clear [<options>]",
        discussion: """
            Examples:
              prefetch-coord blacklist clear --cache ./cache
              prefetch-coord blacklist clear --yes
            """)

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "Redis") var location: RedisLocation

    func run() async throws {
        try await Session.with(location) { session in
            let count = try await session.queue.failedURLs.count()
            if count > 0 {
                try confirmation.ask(
                    "remove \(Wording.count(count, "URL")), all of the blacklist", "blacklist clear")
            }
            // Also where it seems empty: what stands beside members that were removed by hand goes too.
            try await session.queue.failedURLs.removeAll()
            Console.print(count == 0 ? "the blacklist is empty" : "removed \(Wording.count(count, "URL"))")
        }
    }
}

/// `prefetch-coord blacklist export`: the URLs as a list.
struct BlacklistExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write the blacklisted URLs, one per line.",
        usage: "prefetch-coord blacklist export [<file>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord blacklist export failed.txt --cache ./cache
              prefetch-coord blacklist export | prefetch-coord run - --retry-failed

            The file can be given to run, submit and blacklist import.
            """)

    @Argument(help: "File to write. (default: standard output)")
    var file: String?

    @Flag(help: "Print one JSON object per line, with the reason.")
    var json = false

    @OptionGroup(title: "Output") var secrets: SecretOptions
    @OptionGroup(title: "Redis") var location: RedisLocation

    func validate() throws {
        if file == "" { throw ValidationError("export needs a file, or - for standard output") }
    }

    func run() async throws {
        let output = if let file, file != "-" { try OutputFile(path: file) } else { nil as OutputFile? }
        try await Session.with(location) { session in
            var strangers = 0
            var masked = 0
            let count = try await BlacklistLines.write(session.queue) { failed in
                if json { return FailedURLText.object(failed).text }
                if URLLines.isURL(failed.url) {
                    let url = ShownURL.url(failed.url)
                    if url != failed.url { masked += 1 }
                    return url
                }
                strangers += 1
                return nil
            } to: { text throws(PrefetchError) in
                guard let output else {
                    Console.print(text)
                    return !Console.isOutputClosed && Console.outputError == nil
                }
                try output.write(text)
                return true
            }
            try output?.commit()
            if Console.isOutputClosed { return }
            let name = output.map { "\(TerminalText.escaped($0.path)): " } ?? ""
            Console.note("\(name)\(Wording.count(count - strangers, "URL"))")
            if let note = ShownURL.note(ofMasked: masked) { Console.note(note) }
            if strangers > 0 {
                Console.note(
                    "left out, since no line of a list reads back as them: \(Wording.count(strangers, "member")); --json has them"
                )
            }
        }
    }
}

/// Writes members of the list as lines, a block at a time.
enum BlacklistLines {
    /// Returns how many members there were.
    ///
    /// * `line`: the line of a member; nil leaves it out.
    /// * `to`: takes a block of lines; false ends it.
    static func write(
        _ queue: PrefetchQueue, _ line: (FailedURLList.FailedURL) -> String?,
        to: ([UInt8]) throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) -> Int {
        var count = 0
        try await queue.failedURLs.forEach { group throws(PrefetchError) in
            var text: [UInt8] = []
            for failed in group {
                guard let line = line(failed) else { continue }
                text += line.utf8
                text.append(UInt8(ascii: "\n"))
            }
            count += group.count
            return try to(text)
        }
        return count
    }
}
