package import ArgumentParser

/// The commands of `prefetch-coord`, but for the demo.
package enum CoordCommands {
    /// In the order of its help.
    package static var all: [any ParsableCommand.Type] {
        [
            RunCommand.self, SubmitCommand.self, StatusCommand.self, WatchCommand.self, DashCommand.self,
            FailuresCommand.self, WhyCommand.self, RetryCommand.self, BlacklistCommand.self, ExportCommand.self,
            CacheCommand.self, CancelCommand.self, BatchCommand.self, WorkersCommand.self, FsckCommand.self,
            AppendCommand.self, SealCommand.self, PauseCommand.self, ResumeCommand.self, ReprioritiseCommand.self,
            ImportCommand.self, MetricsCommand.self, DoctorCommand.self, ReportCommand.self,
        ]
    }
}
