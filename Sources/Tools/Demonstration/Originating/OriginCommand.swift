public import ArgumentParser
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import WebImage

/// `prefetch-origin`: generates images and serves them without a network.
public struct OriginCommand: AsyncParsableCommand {
    /// Name, help and subcommands.
    public static let configuration = CommandConfiguration(
        commandName: "prefetch-origin",
        abstract: "Make and serve test images for tests and benchmarks.",
        discussion: """
            Examples:
              prefetch-origin generate ./corpus --count 5000
              prefetch-origin serve ./corpus --port 8080
              prefetch-origin misbehave --port 8080
              prefetch-origin dns --listen 127.0.0.1:5353 --capacity 60 --queue 10
            """,
        version: "prefetch \(PrefetchVersion)",
        subcommands: [
            GenerateCommand.self, ServeCommand.self, MisbehaveCommand.self, ManifestCommand.self, NameCommand.self,
        ])

    /// Creates the command with its default options.
    public init() {}
}

extension PrefetchError {
    init(_ error: OriginError, hint: String) {
        self.init(.inputOutput, error.description, hint: hint)
    }
}
