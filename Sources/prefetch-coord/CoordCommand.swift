import ArgumentParser
import Demonstration
import PrefetchCommands
import WebImage

/// `prefetch-coord`: submits, watches, controls.
struct CoordCommand: AsyncParsableCommand {
    /// Its name, help and subcommands.
    static let configuration = CommandConfiguration(
        commandName: "prefetch-coord",
        abstract: "Fetch a huge list of image URLs into a verified cache, with N processes, safely.",
        discussion: """
            Examples:
              prefetch-coord run urls.txt --cache ./cache -n 4
              prefetch-coord submit urls.txt --redis redis://host:6379/0
            """,
        version: "prefetch \(PrefetchVersion)",
        // The demo is what somebody tries after the first one.
        subcommands: CoordCommands.all.prefix(1) + [DemoCommand.self] + CoordCommands.all.dropFirst())

    /// The command as its help says.
    init() {}
}
