internal import ArgumentParser
internal import Prefetch
internal import Redis

/// `prefetch-worker health`: whether the workers of this machine are alive, for supervisors that restart them.
struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Check that the workers of this machine are alive.",
        usage: "prefetch-worker health [--worker NAME] [--ready] [<options>]",
        discussion: """
            Examples:
              prefetch-worker health --redis redis://host:6379/0
              prefetch-worker health --worker host:4711 --ready

            Exit code 0 if each of them sent a heartbeat within its lease, or if Redis is
            unavailable: then workers wait, and a restart does not help. 1 if one sent none,
            or there is no worker. Heartbeats stop when the download loop stops. A worker
            that waits (for Redis, a full disk, a pause) is alive, but not ready: with
            --ready it does not count, and the code is 69 while Redis is unavailable.
            """)

    @Option(help: .name("One worker, by its name or the beginning of it. (default: all of this host)"))
    var worker: String?

    @Flag(help: "Count only workers that take jobs, not paused or waiting ones.")
    var ready = false

    @Flag(name: [.customShort("q"), .long], help: "Print nothing.")
    var quiet = false

    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func run() async throws {
        do {
            try await check()
        } catch let error as PrefetchError where error.kind == .redisUnavailable && !ready {
            // Redis is needed to know; most likely the worker is alive and waits for it, which is not its fault.
            say("waiting: \(TerminalText.escaped(error.message))")
        }
    }

    private func check() async throws {
        try await Session.with(location.record, readsOnly: true) { session in
            let snapshot = try await session.queue.views.snapshot(newest: 0)
            let host = ThisHost.name
            let workers = snapshot.workers.filter { name, worker in
                self.worker.map { name.hasPrefix($0) } ?? (worker.report.host == host)
            }
            var isHealthy = !workers.isEmpty
            if workers.isEmpty {
                say("no worker \(self.worker.map { "'\(TerminalText.escaped($0))'" } ?? "of \(host)") is registered")
            }
            for (name, worker) in workers.sorted(by: { $0.key < $1.key }) {
                let problem = Self.problem(worker, ready: ready)
                if problem != nil { isHealthy = false }
                say(
                    "\(TerminalText.escaped(name))  \(problem ?? "alive")  last heartbeat "
                        + "\(Wording.seconds(Double(worker.silence ?? 0) / 1000)) ago")
            }
            guard isHealthy else { throw ExitCode(1) }
        }
    }

    private func say(_ line: String) {
        if !quiet { Console.print(line) }
    }

    /// The problem of a worker; nil without one.
    private static func problem(_ worker: WorkerRecord, ready: Bool) -> String? {
        switch worker.condition {
        case .overdue: "sends no heartbeat"
        case .held, .trouble: ready ? "waits: \(TerminalText.escaped(worker.report.trouble))" : nil
        case .paused: ready ? "paused" : nil
        case .running: nil
        }
    }
}
