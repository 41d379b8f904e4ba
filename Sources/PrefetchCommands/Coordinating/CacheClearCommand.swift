internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache clear`: removes every image.
struct CacheClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear",
        abstract: "Remove every image from the cache.",
        usage: "prefetch-coord cache clear [--force] [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache clear --cache ./cache

            Batches, lists and what was moved aside stay. While a batch fetches into the
            cache nothing is removed, exit code 75, unless --force is given; what the batch
            has counted is gone then.
            """)

    @Flag(help: "Also what a running batch fetched.")
    var force = false

    @OptionGroup(title: "Where") var folder: CacheFolder

    func run() throws {
        let disk = try folder.openForRemoving(.modificationDate)
        if !force, try disk.isInUse() {
            throw PrefetchError(
                .stopped, "a running batch fetches into \(TerminalText.escaped(disk.directory)); nothing was removed",
                hint: "when it has ended, the same command again; or with --force")
        }
        Console.note("removed \(Wording.count(try disk.clear(), "image"))")
    }
}
