internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord workers set`: other settings for workers on their way.
struct WorkersSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Change the concurrency of running workers.",
        usage: "prefetch-coord workers set <worker>|--all [<options>]",
        discussion: """
            Examples:
              prefetch-coord workers set --all --max-concurrent-downloads 8
              prefetch-coord workers set host:4711 --max-concurrent-downloads 64
              prefetch-coord workers set --all --max-concurrent-downloads auto
              prefetch-coord workers set --all --default

            It takes effect within two seconds. --all also holds for workers that join later
            and replaces the settings of single workers.
            """)

    @Argument(help: "Worker, or the beginning of its name.")
    var worker: String?

    @Flag(help: "All workers of the queue, including those that join later.")
    var all = false

    @Option(
        name: .customLong("max-concurrent-downloads"),
        help: ArgumentHelp(
            "Transfers a worker runs at once, 1 to 4096; auto: it finds the number while it works.",
            discussion: "A number is a maximum. With auto, transfers that receive no data run beside the others.",
            valueName: "n|auto"))
    var maxConcurrentDownloads: ConcurrentDownloads?

    @Flag(
        name: .customLong("default"),
        help: "Reset to the startup value; one worker: to the value of --all, if set.")
    var isDefault = false

    @OptionGroup(title: "Redis") var location: RedisLocation

    func validate() throws {
        if (worker != nil) == all { throw ValidationError("name one worker, or give --all") }
        if worker?.isEmpty == true {
            throw ValidationError("the name of a worker is empty: prefetch-coord workers has them")
        }
        if (maxConcurrentDownloads != nil) == isDefault {
            throw ValidationError("give --max-concurrent-downloads N|auto, or --default")
        }
        try maxConcurrentDownloads?.check()
    }

    func run() async throws {
        try await Session.with(location) { session in
            let queue = session.queue
            var name: String?
            if let worker { name = try await queue.workerRecords.resolve(worker) }
            let told = try await queue.control.setConcurrency(maxConcurrentDownloads, worker: name)
            if let name, told == 0 { throw PauseArguments.gone(.worker(name)) }
            let count = maxConcurrentDownloads.map { setting in
                setting.count.map { "at most \(Wording.count($0, "transfer")) in flight" }
                    ?? "auto: finds its number of transfers"
            }
            if let name {
                let fallback = try await queue.views.snapshot(newest: 0).orders.concurrency
                let before = fallback.map { "\($0) at once, as set with --all" } ?? "as at its start"
                Console.print("worker \(TerminalText.escaped(name)): \(count ?? before)")
            } else {
                let who = "all workers of queue '\(queue.catalog.queueName)'"
                Console.print("\(who): \(count.map { "\($0) each" } ?? "as they were started")")
                if told == 0 { Console.note("no worker is there now; those that come will keep to it") }
            }
        }
    }
}
