import ArgumentParser
import Demonstration
import PrefetchCommands
import WebImage

/// `prefetch-coord`: submits, watches, controls.
struct CoordCommand: AsyncParsableCommand {
    /// Its name, help and subcommands.
    static let configuration = CommandConfiguration(
        commandName: "prefetch-coord",
        abstract: "Download millions of image URLs into a cache of complete, verified images.",
        discussion: """
            Examples:
              prefetch-coord demo
              prefetch-coord run urls.txt --cache ./cache
              prefetch-coord submit urls.txt --redis redis://host:6379/0
            """,
        version: "prefetch \(PrefetchVersion)",
        groupedSubcommands: [CommandGroup(name: "Start", subcommands: CoordCommands.start + [DemoCommand.self])]
            + CoordCommands.groups)

    /// The command as its help says.
    init() {}
}
