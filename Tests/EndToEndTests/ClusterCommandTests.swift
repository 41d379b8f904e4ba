import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing

@Suite("The commands on a Redis Cluster", .timeLimit(.minutes(5)))
struct ClusterCommandTests {
    @Test("Every command works on a cluster node, and nothing touches two slots")
    func commands() async throws {
        let cluster = try await RedisCluster(masters: 1)
        let b = try RemoteBatch(redis: cluster.servers[0])
        let origin = try OriginServer()
        for index in 0..<20 {
            let image = GeneratedImage.png(seed: UInt64(index), width: 16, height: 16)
            origin.route("/\(index).png", OriginResponse(body: image))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
        let missing = origin.url("/missing.png")
        let urls = (0..<20).map { origin.url("/\($0).png") } + [missing, "no url"]
        try await b.submit(urls, as: "first", ["--slot", "home"])
        // The blacklist, and the bell of a worker that waits for its first job, are keys of the queue too.
        for worker in try await b.workers(2) { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        let cache = b.folder.path("cache")
        let commands: [(arguments: [String], code: Int32, says: String)] = [
            (["status"], 0, "first  done  100.0%  finished 22 of 22"), (["status", "first", "--json"], 0, "\"done\""),
            (["workers", "--json"], 0, "\"left\""), (["failures", "first", "--json"], 0, "httpError"),
            (["why", missing, "--cache", cache], 0, "first"), (["blacklist", "list"], 0, missing),
            (["export", "first", "--format", "jsonl", "--cache", cache], 0, "\"downloaded\""),
            (["watch", "first", "--json", "--from-start"], 3, "\"completion\""), (["fsck"], 0, ""),
            (["retry", "first"], 0, "first"), (["status", "first"], 0, "retried by"),
            (["cancel", "--yes"], 0, "cancelled"),
        ]
        for (arguments, code, says) in commands { try await expect(arguments, code, says, b) }
        for id in try await b.queue.catalog.ids().reversed() {
            try await expect(["rm", id, "--yes"], 0, "", b)
        }
        #expect(try await b.queue.catalog.ids() == [])
        let info = try await cluster.command(0, "INFO", "errorstats").string ?? ""
        #expect(!info.contains("CROSSSLOT") && !info.contains("errorstat_ERR:"), "\(info)")
        #expect(!(try await cluster.command(0, "INFO", "commandstats").string ?? "").contains("cmdstat_select"))
        let refused = try await ChildProcess(
            builtProduct("prefetch-coord"), ["status", "--redis", "\(cluster.url(0))/2"]
        )
        #expect(await refused.wait() == .exited(78))
        #expect(refused.stderr.contains("has no database 2") && refused.stderr.contains("--queue"))
    }

    private func expect(_ arguments: [String], _ code: Int32, _ says: String, _ b: RemoteBatch) async throws {
        let child = try await b.done(arguments, code)
        #expect((child.stdout + child.stderr).contains(says), "\(arguments): \(child.stdout) \(child.stderr)")
        #expect(!child.stderr.contains("CROSSSLOT") && !child.stderr.contains("Redis replied"), "\(child.stderr)")
    }

    @Test("Three masters: submit, two workers and status, each told another node")
    func threeNodes() async throws {
        let cluster = try await RedisCluster(masters: 3)
        let folder = TemporaryDirectory()
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 1, width: 8, height: 8)) }
        folder.write(Array((0..<30).map { origin.url("/\($0).png") + "\n" }.joined().utf8), to: "urls.txt")
        func program(_ name: String, _ arguments: [String], node: Int) async throws -> ChildProcess {
            try await ChildProcess(
                builtProduct(name), arguments + ["--redis", cluster.url(node)])
        }
        let submit = try await program("prefetch-coord", ["submit", folder.path("urls.txt")], node: 0)
        #expect(await submit.wait() == .exited(0), "\(submit.stderr)")
        for node in [1, 2] {
            let worker = try await program(
                "prefetch-worker", ["--burst", "--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8"],
                node: node)
            #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        }
        let status = try await program("prefetch-coord", ["status", "--json"], node: 2)
        #expect(await status.wait() == .exited(0), "\(status.stderr)")
        #expect(status.stdout.contains(#""state":"done","total":30,"finished":30,"skipped":0"#))
    }
}
