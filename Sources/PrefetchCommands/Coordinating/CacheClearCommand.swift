internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache clear`: removes every image.
struct CacheClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear",
        abstract: "Remove every image.",
        usage: "prefetch-coord cache clear [--force] [--yes] [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache clear --cache ./cache
              prefetch-coord cache clear --cache ./cache --yes

            Batches, lists and files that were moved aside stay. While a batch fetches into
            the cache, nothing is removed (exit code 75) unless --force is given.
            """)

    @Flag(help: "Also remove what a running batch has fetched.")
    var force = false

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "Cache") var folder: CacheFolder

    func run() throws {
        let disk = try folder.openForRemoving(.modificationDate)
        if !force, try disk.sweep.hasProtectedImages() {
            throw PrefetchError(
                .stopped, "a running batch fetches into \(TerminalText.escaped(disk.directory)); nothing was removed",
                hint: "when it has ended, the same command again; or with --force")
        }
        if !confirmation.yes {
            var usage = CacheUsage()
            _ = try folder.walk(disk) { entry in
                usage.add(entry)
                return true
            }
            if usage.count > 0 {
                try confirmation.ask(
                    "remove \(usage.text), everything in \(TerminalText.escaped(disk.directory))", "cache clear")
            }
        }
        Console.note("removed \(Wording.count(try disk.images.removeAll(), "image"))")
    }
}
