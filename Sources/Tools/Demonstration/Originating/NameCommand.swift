internal import ArgumentParser
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import Threading
internal import WebImage

/// `prefetch-origin dns`: a resolver that takes only so much.
struct NameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dns",
        abstract: "Answer DNS queries for every name, as a slow or overloaded resolver would.",
        discussion: """
            Examples:
              prefetch-origin dns --listen 127.0.0.1:5353
              prefetch-origin dns --capacity 60 --queue 10 --servfail 0.02

            Prints the address on the first line and serves until Ctrl-C or SIGTERM. Then it
            prints how many queries it received, dropped, and answered with SERVFAIL.
            """)

    @Option(help: .value("address:port", "Where to listen; port 0 = any free port."))
    var listen = "127.0.0.1:0"

    @Option(help: .value("number", "Queries answered per second. (default: no limit)"))
    var capacity: Double?

    @Option(help: .value("number", "Queries that wait for that at most; others are dropped."))
    var queue = 1000

    @Option(help: .value("time", "Time of each answer, in addition to its wait. (default: none)"))
    var latency: TimeSpan?

    @Option(help: .value("share", "Share of the queries that get SERVFAIL, 0 to 1."))
    var servfail = 0.0

    @Option(help: .value("share", "Share of the queries that get no answer, 0 to 1."))
    var loss = 0.0

    @Option(
        help: .value(
            "address", "Address of every name, or 127.0.0.0/8-by-hash: one of that network for each name."))
    var answer = Self.byHash

    private static let byHash = "127.0.0.0/8-by-hash"

    private var place: (address: String, port: Int)? {
        guard let colon = listen.lastIndex(of: ":"), let port = Int(listen[listen.index(after: colon)...]),
            (0...65_535).contains(port)
        else { return nil }
        let address = listen[..<colon].filter { $0 != "[" && $0 != "]" }
        return IPAddress(address) == nil ? nil : (String(address), port)
    }

    func validate() throws {
        guard place != nil else { throw ValidationError("--listen is an address and a port, such as 127.0.0.1:5353") }
        guard capacity ?? 1 > 0 else { throw ValidationError("--capacity is more than 0") }
        guard queue >= 0 else { throw ValidationError("--queue is 0 or more") }
        guard (0...1).contains(servfail), (0...1).contains(loss) else {
            throw ValidationError("--servfail and --loss are shares from 0 to 1")
        }
        guard answer == Self.byHash || IPAddress(answer) != nil else {
            throw ValidationError("--answer is an address or \(Self.byHash)")
        }
    }

    func run() async throws {
        let stop = StopRequest()
        TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
        let (address, port) = place ?? ("127.0.0.1", 0)
        let fixed = answer == Self.byHash ? nil : answer
        let server: OriginResolver
        do throws(OriginError) {
            server = try OriginResolver(address: address, port: port) { question in
                .addresses([fixed ?? Self.address(of: question.name)], to: question)
            }
        } catch {
            throw PrefetchError(error, hint: "see prefetch-origin dns --help")
        }
        var load = NameLoad()
        (load.capacity, load.queue, load.latency) = (capacity, queue, latency?.seconds ?? 0)
        (load.failures, load.loss) = (servfail, loss)
        server.load = load
        Console.print(server.place)
        await stop.first.wait()
        let counts = server.counts
        await server.stop()
        Console.print(
            "queries=\(counts.queries) questions=\(counts.questions) dropped=\(counts.dropped) servfail=\(counts.failed)"
        )
    }

    /// 127.1.0.0 to 127.255.255.255, by FNV-1a of the name.
    private static func address(of name: String) -> String {
        var hash: UInt32 = 2_166_136_261
        for byte in name.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        return "127.\(1 + (hash >> 16) % 255).\(hash >> 8 & 0xff).\(hash & 0xff)"
    }
}
