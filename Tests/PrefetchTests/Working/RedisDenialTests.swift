import Origin
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("A worker and the address of its own Redis", .timeLimit(.minutes(5)))
struct RedisDenialTests {
    private struct Ending: Equatable {
        var outcome: PrefetchOutcome
        var detail: String
    }

    /// Fetches these URLs and returns what became of each, by URL.
    private func run(
        _ urls: [String], _ fixture: WorkerFixture, at url: String, queue name: String = "default"
    ) async throws -> [String: Ending] {
        let queue = try fixture.queue(name, at: url)
        let batch = try await fixture.submit(urls, to: queue)
        let worker = try fixture.worker(
            queue: name, at: url,
            downloads: {
                $0.addressPolicy = AddressPolicy(allow: ["0.0.0.0/0", "::/0"].compactMap { CIDR($0) })
                $0.maxTries = 1
            })
        _ = try await worker.run()
        var endings: [String: Ending] = [:]
        for failure in try await queue.results.details(of: batch, indices: Array(urls.indices)).values {
            endings[failure.url] = Ending(outcome: failure.outcome, detail: failure.detail)
        }
        return endings
    }

    private func spellings(_ port: Int) -> [String] {
        [
            "127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "2130706433",
            "0x7f.1", "[64:ff9b::7f00:1]",
        ].map { "http://\($0):\(port)/image.png" }
    }

    @Test("No URL, spelling or redirect reaches Redis, whatever network is open and however the worker reaches it")
    func alone() async throws {
        for isUnix in [false, true] {
            let port = freePort()
            let redis = try await RedisServer(options: ["--port", "\(port)", "--bind", "0.0.0.0", "-::"])
            let fixture = try WorkerFixture(redis: redis)
            fixture.origin.route("/there.png", .redirect(to: "http://127.0.0.1:\(port)/there.png"))
            let urls = spellings(port) + [fixture.origin.url("/there.png")]
            let endings = try await run(urls, fixture, at: isUnix ? redis.url : "redis://localhost:\(port)")
            for url in urls {
                #expect(endings[url]?.outcome == .refused, "\(url): \(String(describing: endings[url]))")
                #expect(endings[url]?.detail.hasSuffix("port \(port) is the queue's Redis") == true)
            }
            #expect(!redis.log.contains("SECURITY"))
        }
    }

    @Test("No node of a cluster is reached, at its bus neither, also one that joined after the worker began")
    func cluster() async throws {
        let cluster = try await RedisCluster(masters: 3, replicas: 1)
        let fixture = try WorkerFixture(redis: cluster.servers[0])
        var urls: [String] = []
        for index in cluster.servers.indices {
            for port in [cluster.port(index), try await cluster.busPort(index)] {
                urls.append("http://127.0.0.1:\(port)/\(index).png")
            }
        }
        let endings = try await run(urls, fixture, at: cluster.url(0))
        for url in urls { #expect(endings[url]?.outcome == .refused, "\(url): \(String(describing: endings[url]))") }
        for server in cluster.servers { #expect(!server.log.contains("SECURITY")) }
    }

    @Test("A node that takes over the queue while the worker runs is not reached either")
    func moved() async throws {
        let cluster = try await RedisCluster(masters: 2)
        let name = "default"
        let owner = try #require(try await cluster.owner(of: PrefetchKeys(queue: name).root))
        let fixture = try WorkerFixture(redis: cluster.servers[owner])
        let image = GeneratedImage.png(seed: 1, width: 12, height: 9)
        fixture.origin.route("/held.png", OriginResponse(body: image, fault: .stallBeforeHeader))
        let queue = try fixture.queue(name, at: cluster.url(owner))
        let first = try await fixture.submit([fixture.origin.url("/held.png")], to: queue)
        let worker = try fixture.worker(
            queue: name, at: cluster.url(owner), downloads: { $0.maxTries = 1 })
        async let counts = worker.run()
        try await until { !fixture.origin.requests.isEmpty }
        // A node nobody has heard of takes the slot.
        let new = try await cluster.add()
        try await cluster.move(slotOf: queue.keys.root, to: new)
        let url = "http://127.0.0.1:\(cluster.port(new))/new.png"
        let second = try await fixture.submit([url], to: queue)
        fixture.origin.release("/held.png")
        #expect(try await counts.finished == 2)
        #expect(try await queue.results.details(of: first, indices: [0]).isEmpty)
        let failure = try #require(try await queue.results.details(of: second, indices: [0])[0])
        #expect(failure.outcome == .refused && failure.detail.hasSuffix("is the queue's Redis"))
        #expect(!cluster.servers[new].log.contains("SECURITY"))
    }
}
