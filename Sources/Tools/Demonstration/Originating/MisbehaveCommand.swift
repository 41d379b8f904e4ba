internal import ArgumentParser
internal import Origin
internal import Prefetch
internal import PrefetchCommands
internal import Threading

/// `prefetch-origin misbehave`: the demo's server, for workers on other machines.
struct MisbehaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "misbehave",
        abstract: "Serve the good and broken images of the demo.",
        discussion: """
            Examples:
              prefetch-origin misbehave --address 0.0.0.0 --port 80
              prefetch-origin manifest | cut -f 2 > urls.txt

            Images of every kind, 404, slow answers, truncated and stalled bodies, redirect
            loops, HTML pages, 503 followed by an image. \(DemoPlan.host) and
            \(DemoPlan.busyHost) have to lead to it, \(DemoPlan.closedHost) to a closed
            port. Prints the address on the first line.
            """)

    @Option(help: .value("address", "Address to listen on."))
    var address = "127.0.0.1"

    @Option(help: .value("port", "Port to listen on; 0 = any free port."))
    var port = 0

    @OptionGroup var plan: DemoPlanOptions

    func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port is a number from 0 to 65535") }
    }

    func run() async throws {
        let stop = StopRequest()
        TerminationSignals.install { signal, count in stop.request(signal: signal, count: count) }
        let origin: DemoOrigin
        do throws(OriginError) {
            origin = try await DemoOrigin(plan.plan, address: address, port: port)
        } catch {
            throw PrefetchError(error, hint: "see prefetch-origin misbehave --help")
        }
        Console.print(origin.address)
        await stop.first.wait()
        await origin.stop()
    }
}

/// The plan's options, shared by the server and its manifest, which have to agree.
struct DemoPlanOptions: ParsableArguments {
    @Option(help: "URLs, from 100 to 100,000.")
    var count = 2000

    func validate() throws {
        guard DemoPlan.counts.contains(count) else {
            throw ValidationError(
                "--count is a number from \(DemoPlan.counts.lowerBound) to \(DemoPlan.counts.upperBound)")
        }
    }

    var plan: DemoPlan { DemoPlan(count: count) }
}
