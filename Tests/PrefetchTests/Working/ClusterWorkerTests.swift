import Glibc
import Origin
import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Workers on more than one Redis", .timeLimit(.minutes(5)))
struct ClusterWorkerTests {
    /// A queue with a batch of 60 URLs: 40 images at once, 10 that are missing, 10 that are held until released.
    private struct Part {
        var queue: PrefetchQueue
        var name: String
        var batch: String
        var held: [String]
    }

    @Test("Queues on different nodes work at once, while one moves and the master of another is replaced")
    func cluster() async throws {
        let cluster = try await RedisCluster(masters: 3, replicas: 1)
        let fixture = try WorkerFixture(redis: cluster.servers[0])
        var parts: [Part] = []
        for owner in 0..<3 {
            let name = try await self.name(servedBy: owner, in: cluster)
            parts.append(try await part(name, fixture, at: cluster.url((owner + 1) % 3)))
            #expect(
                try await parts[owner].queue.connection.endpoint == RedisConfiguration(url: cluster.url(owner)).endpoint
            )
        }
        try await withThrowingTaskGroup(of: PrefetchCounts.self) { group in
            for (index, part) in parts.enumerated() {
                for number in 1...2 {
                    let url = cluster.url((index + number) % 3)
                    let worker = try fixture.worker(queue: part.name, cache: part.name, at: url)
                    group.addTask { try await worker.run() }
                }
            }
            for part in parts { try await untilFinished(50, part) }
            // The first one's master goes over to its replica, which is node 3.
            try await cluster.allowFailures(to: 3)
            // The second one's slot goes to the third node, while its workers have outcomes to report.
            try await cluster.move(slotOf: parts[1].queue.keys.root, to: 2) {
                for path in parts[1].held.prefix(5) { fixture.origin.release(path) }
                let error = await #expect(throws: RedisError.self) {
                    var impatient = parts[1].queue
                    impatient.redis.waitLimit = .milliseconds(10)
                    _ = try await impatient.jobs.claim(worker: "w", sequence: 1, count: 1, lease: 1000)
                }
                #expect(error?.replyCode == "ASK")
            }
            for part in parts { for path in part.held { fixture.origin.release(path) } }
            try await group.waitForAll()
        }
        for part in parts { try await check(part) }
        #expect(
            try await parts[0].queue.connection.endpoint == RedisConfiguration(url: cluster.url(3)).endpoint)
        #expect(
            try await parts[1].queue.connection.endpoint == RedisConfiguration(url: cluster.url(2)).endpoint)
    }

    @Test("Behind one address a replica takes the master's place in the middle of a batch")
    func flip() async throws {
        let ports = [freePort(), freePort()]
        let first = try await RedisServer(options: ["--port", "\(ports[0])", "--bind", "127.0.0.1"])
        let second = try await RedisServer(options: [
            "--port", "\(ports[1])", "--bind", "127.0.0.1", "--replicaof", "127.0.0.1", "\(ports[0])",
        ])
        let fixture = try WorkerFixture(redis: first)
        let address = fixture.folder.path("redis")
        #expect(symlink(first.socketPath, address) == 0)
        let part = try await part("default", fixture, at: "unix://\(address)")
        let controls = try [first, second].map { RedisConnection(try RedisConfiguration(url: $0.url), name: "control") }
        try await withThrowingTaskGroup(of: PrefetchCounts.self) { group in
            for _ in 0..<2 {
                let worker = try fixture.worker(cache: "cache", at: "unix://\(address)")
                group.addTask { try await worker.run() }
            }
            try await untilFinished(50, part)
            // The link is up for the replica before its master counts it as online, and only then hands over to it.
            try await until {
                try await (controls[0].command(["INFO", "replication"]).string ?? "").contains("state=online")
            }
            try await controls[0].command(["FAILOVER", "TO", "127.0.0.1", RedisArgument(ports[1])])
            for (control, role) in zip(controls, ["slave", "master"]) {
                try await until { try await control.command(["ROLE"]).array?[0].string == role }
            }
            // Until the name leads to the new master, the old one refuses to write.
            for path in part.held.prefix(5) { fixture.origin.release(path) }
            let error = await #expect(throws: RedisError.self) {
                var impatient = part.queue
                impatient.redis.waitLimit = .milliseconds(10)
                _ = try await impatient.jobs.claim(worker: "w", sequence: 1, count: 1, lease: 1000)
            }
            #expect(error?.replyCode == "READONLY")
            #expect(symlink(second.socketPath, address + ".new") == 0 && rename(address + ".new", address) == 0)
            for path in part.held { fixture.origin.release(path) }
            try await group.waitForAll()
        }
        try await check(part)
    }

    private func part(_ name: String, _ fixture: WorkerFixture, at url: String) async throws -> Part {
        var urls: [String] = []
        var held: [String] = []
        for index in 0..<40 {
            let image = GeneratedImage.png(seed: UInt64(index), width: 12, height: 9)
            fixture.origin.route("/\(name)/\(index).png", OriginResponse(body: image))
            urls.append(fixture.origin.url("/\(name)/\(index).png"))
            guard index < 10 else { continue }
            fixture.origin.route("/\(name)/missing\(index).png", OriginResponse(status: 404))
            urls.append(fixture.origin.url("/\(name)/missing\(index).png"))
            let path = "/\(name)/held\(index).png"
            fixture.origin.route(path, OriginResponse(body: image, fault: .stallBeforeHeader))
            held.append(path)
            urls.append(fixture.origin.url(path))
        }
        var queue = try fixture.queue(name, at: url)
        queue.redis.waitLimit = .seconds(30)
        let id = try await fixture.submit(urls, to: queue, jobSize: 5)
        return Part(queue: queue, name: name, batch: id, held: held)
    }

    private func untilFinished(_ finished: Int, _ part: Part) async throws {
        try await until { try await part.queue.batches.status(of: part.batch)?.counts.finished ?? 0 >= finished }
    }

    private func check(_ part: Part) async throws {
        let status = try #require(try await part.queue.batches.status(of: part.batch))
        #expect(status.state == .done && status.counts.finished == 60)
        #expect(status.counts[.downloaded] == 50 && status.counts[.httpError] == 10)
        let sum = try await part.queue.results.workerCounts(of: part.batch).values.reduce(into: PrefetchCounts()) {
            $0 += $1
        }
        #expect(sum == status.counts)
        #expect(try await BatchCheck(queue: part.queue, batch: part.batch).run().map(\.message) == [])
    }

    private func name(servedBy owner: Int, in cluster: RedisCluster) async throws -> String {
        for index in 0..<100 {
            if try await cluster.owner(of: PrefetchKeys(queue: "q\(index)").root) == owner { return "q\(index)" }
        }
        throw RedisError(.reply, "no name")
    }
}
