internal import ArgumentParser
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import Threading

/// `prefetch-origin serve`: serves a folder over HTTP.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve the files of a folder over HTTP.",
        discussion: """
            Examples:
              prefetch-origin serve ./corpus
              prefetch-origin serve ./corpus --address 0.0.0.0 --port 8080

            Prints the address on the first line and serves until Ctrl-C. Queries are
            ignored, so one file has as many URLs as needed.
            """)

    @Argument(help: ArgumentHelp("The folder.", valueName: "dir"), completion: .directory)
    var folder: String

    @Option(help: .value("address", "Address to listen on."))
    var address = "127.0.0.1"

    @Option(help: .value("port", "Port to listen on; 0 = any free port."))
    var port = 0

    @Option(help: .value("time", "Delay of each response: 50ms, or a range 50ms-100ms. (default: none)"))
    var delay = ""

    @Flag(
        help: ArgumentHelp(
            "Serve faults below /fault/KIND/.", discussion: "KIND: \(ServeFaults.kinds.joined(separator: ", "))."))
    var faults = false

    @Flag(help: "Answer every request with a page, as a network does that wants a login.")
    var portal = false

    @Flag(help: "Print a line for each request: its path and its User-Agent.")
    var log = false

    private var delays: ClosedRange<Double>? {
        let parts = delay.split(separator: "-").map { TimeSpan(argument: String($0))?.seconds }
        guard let least = parts.first ?? nil, let most = parts.last ?? nil, parts.count <= 2, least <= most else {
            return nil
        }
        return least...most
    }

    func validate() throws {
        guard delay.isEmpty || delays != nil else {
            throw ValidationError("--delay is a time such as 50ms, or two with - between, not '\(delay)'")
        }
        guard (0...65_535).contains(port) else { throw ValidationError("--port is a number from 0 to 65535") }
    }

    func run() async throws {
        let stop = StopRequest()
        TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
        let server: OriginServer
        do throws(OriginError) {
            let behaviour = ServeFaults(delay: delays, hasFaults: faults, isPortal: portal)
            let isLogged = log
            server = try OriginServer.serve(directory: folder, address: address, port: port) {
                if isLogged { Console.print("\($0.path) \($0.header("User-Agent") ?? "-")") }
                return behaviour.response(to: $0, plain: $1)
            }
        } catch {
            throw PrefetchError(error, hint: "see prefetch-origin serve --help")
        }
        // The log would grow with every request.
        server.keepsLog = false
        Console.print(server.url("/"))
        await stop.first.wait()
        await server.stop()
    }
}
