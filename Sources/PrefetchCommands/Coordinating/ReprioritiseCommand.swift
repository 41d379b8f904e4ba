internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord reprioritise`: another priority or order for a batch on its way.
struct ReprioritiseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reprioritise",
        abstract: "Change the priority or the order of a running batch.",
        usage: "prefetch-coord reprioritise <batch> [<priority>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord reprioritise urls-7f3a high --cache ./cache
              prefetch-coord reprioritise urls-7f3a --order lifo

            Of 16 URLs, high gets 11, normal 4 and low 1; those without URLs leave theirs to the others.
            Jobs that workers have taken already are not recalled.
            """,
        aliases: ["reprioritize"])

    @Argument(help: "Batch, or the beginning of its name.")
    var batch: String

    @Argument(help: "high, normal or low.")
    var priority: PrefetchPriority?

    @Option(help: .value("order", "Which jobs start first: fifo or lifo."))
    var order: PrefetchOrder?

    @OptionGroup(title: "Redis") var location: RedisLocation

    func validate() throws {
        guard priority != nil || order != nil else { throw ValidationError("give high, normal or low, or --order") }
    }

    func run() async throws {
        try await Session.with(location) { session in
            let id = try await session.queue.catalog.resolve(batch)
            switch try await session.queue.control.reprioritise(batch: id, priority: priority, order: order) {
            case .gone: throw PauseArguments.gone(.batch(id))
            case .over(let state): Console.print("\(TerminalText.escaped(id)) is \(state) already")
            case .changed(let before, let now):
                var parts = ["\(TerminalText.escaped(id))  priority \(now.priority.rawValue)"]
                if before.priority != now.priority { parts[0] += ", was \(before.priority.rawValue)" }
                parts.append("order \(now.order.rawValue)")
                if before.order != now.order { parts[1] += ", was \(before.order.rawValue)" }
                Console.print(parts.joined(separator: "  "))
            }
        }
    }
}
