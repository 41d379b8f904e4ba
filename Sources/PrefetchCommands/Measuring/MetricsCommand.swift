internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading

extension MetricFormat: ExpressibleByArgument {}

struct MetricsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics",
        abstract: "Print or serve metrics for Prometheus.",
        usage: "prefetch-coord metrics [--listen ADDRESS | --textfile FILE] [<options>]",
        discussion: """
            Examples:
              prefetch-coord metrics --redis redis://host:6379/0
              prefetch-coord metrics --listen 127.0.0.1:9464
              prefetch-coord metrics --textfile /var/lib/node_exporter/prefetch.prom

            --listen serves /metrics, /healthz (the program runs) and /readyz (Redis
            responds, and the cache is writable) until it is stopped. One per queue is
            enough: everything is read from Redis.
            """)

    @Option(help: .value("address", "Serve on ADDRESS:PORT, or on a PORT of 127.0.0.1; 0 = any free port."))
    var listen: ListenAddress?

    @Option(help: .file("Write them to this file, which is replaced atomically."), completion: .file())
    var textfile: String?

    @Option(
        help: .value(
            "format", "prometheus or openmetrics. (default: prometheus; with --listen what the client asks for)"))
    var format: MetricFormat?

    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func validate() throws {
        if listen != nil && textfile != nil { throw ValidationError("give --listen or --textfile, not both") }
        if listen != nil && format != nil {
            throw ValidationError("--format does not go with --listen: the client asks for one")
        }
        if textfile != nil && format == .openmetrics {
            throw ValidationError("a node exporter reads the prometheus format from files")
        }
    }

    func run() async throws {
        if let listen { return try await serve(listen) }
        let output: OutputFile? = if let textfile { try OutputFile(path: textfile) } else { nil }
        try await Session.with(location.record) { session in
            let began = ContinuousClock.now
            let snapshot = try await session.queue.views.snapshot()
            let took = (ContinuousClock.now - began) / .seconds(1)
            let text = (format ?? .prometheus).text(
                QueueMetrics.families(snapshot, cache, took: took), queue: session.queue.keys.queue)
            guard let output else { return Console.print(String(text.dropLast())) }
            try output.write(Array(text.utf8))
            try output.commit()
        }
    }

    private var cache: QueueMetrics.Cache? { location.cacheFolder.flatMap { QueueMetrics.Cache($0) } }

    private func serve(_ address: ListenAddress) async throws {
        let stop = StopRequest()
        try await MetricsServer.listening(on: address) { server in
            // An unreachable Redis is reported, and does not end the command.
            try await Session.with(location.record, waits: true) { session in
                TerminationSignals.install { signal, count in
                    stop.request(signal: signal, count: count)
                    server.stop()
                    session.queue.connection.interrupt()
                }
                let url = ListenAddress(host: address.host, port: server.bound).text
                Console.note("serving http://\(url)/metrics; Ctrl-C ends it")
                let probe = QueueProbe(session.queue, cache: location.cacheFolder)
                await server.run { await probe.answer($0) }
            }
        }
    }
}
