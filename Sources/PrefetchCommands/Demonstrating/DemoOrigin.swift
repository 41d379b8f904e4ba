internal import Origin
internal import Threading

/// The server of a demo: a loopback origin in this process that does with each URL what the plan says.
struct DemoOrigin: Sendable {
    private let server: OriginServer
    private let closed: ClosedPort

    /// Makes the images and listens.
    /// - Throws: ``OriginError`` where no port can be had.
    init(_ plan: DemoPlan) async throws(OriginError) {
        server = try OriginServer()
        server.keepsLog = false
        closed = try ClosedPort()
        let images = await Self.images()
        for entry in plan.entries where entry.behaviour != .closed {
            let image = images[entry.kind]?[entry.number / GeneratedImage.Kind.allCases.count % Self.sizes.count] ?? []
            server.route(entry.path, sequence: Self.answers(entry, image))
        }
    }

    /// Where the workers find the two names of the plan, as `--connect-to` takes it.
    var connectTo: [String] {
        [
            "\(DemoPlan.host):80:127.0.0.1:\(server.port)", "\(DemoPlan.closedHost):80:127.0.0.1:\(closed.port)",
        ]
    }

    /// Its address, for a person.
    var address: String { server.url("/") }

    /// Closes every connection.
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

    private static let sizes = [4_000, 10_000, 20_000, 40_000]

    /// A few images of every kind; the same bytes are served under many names.
    private static func images() async -> [GeneratedImage.Kind: [[UInt8]]] {
        let pool = ThreadPool(threads: Processor.count, name: "generate")
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
