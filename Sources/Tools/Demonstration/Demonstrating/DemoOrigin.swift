internal import Origin
internal import Threading
internal import WebImage
internal import PrefetchCommands

/// The server of a demo: a loopback origin in this process that does with each URL what the plan says.
struct DemoOrigin: Sendable {
    private let server: OriginServer
    private let closed: ClosedPort
    private let sent = Locked(Sent())

    /// The images that were sent at the first request, and the seconds from the first request of all to the last of them.
    struct Sent: Sendable, Equatable {
        var images = 0
        var seconds: Double { images > 0 ? max(0.001, last - first) : 0 }
        fileprivate var first = Double.infinity
        fileprivate var last = 0.0
    }

    /// Makes the images and listens.
    /// * `address`: of this machine.
    /// * `port`: 0 for any free one.
    /// - Throws: ``OriginError`` where no port can be had.
    init(_ plan: DemoPlan, address: String = "127.0.0.1", port: Int = 0) async throws(OriginError) {
        server = try OriginServer(address: address, port: port)
        server.keepsLog = false
        closed = try ClosedPort()
        let images = await Self.images()
        for entry in plan.entries where entry.behaviour != .closed {
            let image = Self.image(of: entry, in: images)
            let (answers, sent) = (Self.answers(entry, image), sent)
            server.route(entry.path) { request in
                let answer = answers[min(request.number, answers.count) - 1]
                sent.withLock {
                    $0.first = min($0.first, request.time)
                    guard [.image, .slow].contains(entry.behaviour) else { return }
                    $0.images += 1
                    $0.last = max($0.last, request.time + answer.delay)
                }
                return answer
            }
        }
    }

    /// Until now.
    var imagesSent: Sent { sent.withLock { $0 } }

    /// The ports of the names of the plan, as `--connect-to` takes them.
    var connectTo: [String] {
        [
            "\(DemoPlan.host):80:127.0.0.1:\(server.port)", "\(DemoPlan.busyHost):80:127.0.0.1:\(server.port)",
            "\(DemoPlan.closedHost):80:127.0.0.1:\(closed.port)",
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
            whole.delay = 0.2 + 0.3 * Double(entry.number % 8) / 7
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

    /// What each URL has to leave in a cache: nil where it has to leave nothing.
    static func bodies(_ plan: DemoPlan) async -> [[UInt8]?] {
        let images = await images()
        return plan.entries.map { $0.behaviour.outcome.isSkipped ? nil : image(of: $0, in: images) }
    }

    private static func image(of entry: DemoPlan.Entry, in images: [GeneratedImage.Kind: [[UInt8]]]) -> [UInt8] {
        images[entry.kind]?[entry.number / DemoPlan.kinds.count % sizes.count] ?? []
    }

    private static let sizes = [4_000, 10_000, 20_000, 40_000]

    /// A few images of every kind; the same bytes are served under many names.
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
