package import ArgumentParser

/// The commands of `prefetch-coord` in the groups of its help, but for the demo.
package enum CoordCommands {
    package static let start: [any ParsableCommand.Type] = [RunCommand.self]

    package static let groups = [
        CommandGroup(
            name: "Queue",
            subcommands: [
                SubmitCommand.self, RetryCommand.self, CancelCommand.self, PauseCommand.self, ResumeCommand.self,
                SetCommand.self, RemoveCommand.self,
            ]),
        CommandGroup(name: "Watch", subcommands: [StatusCommand.self, WatchCommand.self, DashCommand.self]),
        CommandGroup(
            name: "Results",
            subcommands: [FailuresCommand.self, WhyCommand.self, ExportCommand.self, HealCommand.self]),
        CommandGroup(name: "Cache", subcommands: [CacheCommand.self, BlacklistCommand.self]),
        CommandGroup(
            name: "Operate",
            subcommands: [WorkersCommand.self, FsckCommand.self, MetricsCommand.self, DoctorCommand.self]),
    ]
}
