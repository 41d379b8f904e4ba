public import ArgumentParser
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import WebImage

/// `prefetch-origin`: images to fetch, and a server to fetch them from, where there is no network.
public struct OriginCommand: AsyncParsableCommand {
    /// Its name, help and subcommands.
    public static let configuration = CommandConfiguration(
        commandName: "prefetch-origin",
        abstract: "Make and serve test images for tests and benchmarks.",
        discussion: """
            Examples:
              prefetch-origin generate ./corpus --count 5000
              prefetch-origin serve ./corpus --port 8080
              prefetch-origin misbehave --port 8080
            """,
        version: "prefetch \(PrefetchVersion)",
        subcommands: [
            GenerateCommand.self, ServeCommand.self, MisbehaveCommand.self, ManifestCommand.self,
        ])

    /// The command as its help says.
    public init() {}
}

extension PrefetchError {
    /// What an origin could not do, and what to do about it.
    init(_ error: OriginError, hint: String) {
        self.init(.inputOutput, error.description, hint: hint)
    }
}
