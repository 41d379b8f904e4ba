internal import Origin
internal import Threading
internal import WebImage
internal import PrefetchCommands

/// The server of a demo: a loopback origin in this process that treats each URL as planned.
struct DemoOrigin: Sendable {
    private let server: OriginServer
    private let closed: ClosedPort

    /// Generates the images and starts listening.
    /// * `address`: of this machine.
    /// * `port`: 0 for any free one.
    /// - Throws: ``OriginError`` if the port is not available.
    init(_ plan: DemoPlan, address: String = "127.0.0.1", port: Int = 0) async throws(OriginError) {
        server = try OriginServer(address: address, port: port)
        server.keepsLog = false
        closed = try ClosedPort()
        let images = await Self.images()
        for entry in plan.entries where entry.behaviour != .closed {
            let image = Self.image(of: entry, in: images)
            server.route(entry.path, sequence: Self.answers(entry, image))
        }
    }

    /// Addresses of the plan's two host names, in `--connect-to` form.
    var connectTo: [String] {
        [
            "\(DemoPlan.host):80:127.0.0.1:\(server.port)", "\(DemoPlan.closedHost):80:127.0.0.1:\(closed.port)",
        ]
    }

    var address: String { server.url("/") }

    func stop() async { await server.stop() }

    private static func answers(_ entry: DemoPlan.Entry, _ image: [UInt8]) -> [OriginResponse] {
        var whole = OriginResponse(body: image)
        switch entry.behaviour {
        case .image: return [whole]
        case .slow:
            whole.delay = 0.3 + 0.5 * Double(entry.number % 8) / 7
            return [whole]
        case .heals: return [.busy(retryAfter: 1), whole]
        case .cut: return [OriginResponse(body: image, fault: .truncated(after: image.count / 2))]
        case .stalls: return [OriginResponse(body: image, fault: .stall(after: image.count / 2))]
        case .loop: return [.redirect(to: entry.path)]
        case .page:
            return [
                OriginResponse(
                    headers: [("Content-Type", "image/jpeg")],
                    body: Array("<!DOCTYPE html><title>Sorry</title><p>This image was removed.".utf8))
            ]
        case .missing, .closed: return [OriginResponse(status: 404)]
        }
    }

    /// The expected cached bytes of each URL; nil if it must not be cached.
    static func bodies(_ plan: DemoPlan) async -> [[UInt8]?] {
        let images = await images()
        return plan.entries.map { $0.behaviour.outcome.isSkipped ? nil : image(of: $0, in: images) }
    }

    private static func image(of entry: DemoPlan.Entry, in images: [GeneratedImage.Kind: [[UInt8]]]) -> [UInt8] {
        images[entry.kind]?[entry.number / GeneratedImage.Kind.allCases.count % sizes.count] ?? []
    }

    private static let sizes = [4_000, 10_000, 20_000, 40_000]

    private static func images() async -> [GeneratedImage.Kind: [[UInt8]]] {
        let pool = ThreadPool(threads: Processors.count, name: "generate")
        return await withTaskGroup(of: (GeneratedImage.Kind, [[UInt8]]).self) { group in
            for (index, kind) in GeneratedImage.Kind.allCases.enumerated() {
                group.addTask(executorPreference: pool) {
                    let images = sizes.enumerated().map { size, bytes in
                        GeneratedImage.image(
                            kind, seed: UInt64(index * sizes.count + size + 1), approximateBytes: bytes)
                    }
                    return (kind, images)
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }
}
