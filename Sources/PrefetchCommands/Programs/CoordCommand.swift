public import ArgumentParser
internal import WebImage

/// `prefetch-coord`: submits, watches, controls.
public struct CoordCommand: AsyncParsableCommand {
    /// Its name, help and subcommands.
    public static let configuration = CommandConfiguration(
        commandName: "prefetch-coord",
        abstract: "Fetch a huge list of image URLs into a verified cache, with N processes, safely.",
        discussion: """
            Examples:
              prefetch-coord run urls.txt --cache ./cache -n 4
              prefetch-coord submit urls.txt --redis redis://host:6379/0
            """,
        version: "prefetch \(PrefetchVersion)",
        subcommands: [
            RunCommand.self, DemoCommand.self, SubmitCommand.self, StatusCommand.self, WatchCommand.self,
            DashCommand.self,
            FailuresCommand.self, WhyCommand.self, RetryCommand.self, BlacklistCommand.self, ExportCommand.self,
            CacheCommand.self, CancelCommand.self, BatchCommand.self, WorkersCommand.self, FsckCommand.self,
            AppendCommand.self, SealCommand.self, PauseCommand.self, ResumeCommand.self, ReprioritiseCommand.self,
            ImportCommand.self, MetricsCommand.self, DoctorCommand.self,
            ReportCommand.self,
        ])

    /// The command as its help says.
    public init() {}
}
