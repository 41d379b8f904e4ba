import Glibc
import Origin
import TestSupport
import Testing

/// The calls of a list that three worker processes fetch, of which one is killed: as a file, `Tests/Golden/traces`. Which URL ends when is
/// nobody's promise, so they are `*` in it, and compared as a set.
@Suite("Golden trace of a list over three workers", .timeLimit(.minutes(5)))
struct ListTraceTests {
    @Test(arguments: ["default", "sd3"])
    func `the calls of a list are those of its trace, though a worker is killed`(mode: String) async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        let paths = (0..<24).map { $0 % 8 == 5 ? "/\($0).gone" : "/\($0).png" }
        for (index, path) in paths.enumerated() where path.hasSuffix("png") {
            let image = GeneratedImage.png(seed: UInt64(index), width: 8, height: 8)
            // The last of them wait for the kill: fewer than a worker's transfers, so that one that holds them all still asks for the others.
            origin.route(path, OriginResponse(body: image, fault: index >= 16 ? .stallBeforeHeader : nil))
        }
        let urls = paths.map { origin.url($0) }
        let compat = mode == "default" ? ["--tries", "1"] : ["--compat", mode]
        try await b.submit(urls, as: "list", compat + ["--job-size", "4"])
        let workers = try await b.workers(3, ["--lease", "1s", "--max-concurrent-downloads", "8"])
        await origin.waitForRequests(20)
        workers[0].signal(SIGKILL)
        #expect(await workers[0].wait() == .signalled(SIGKILL))
        for path in paths[16...] { origin.release(path) }
        for worker in workers[1...] { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }

        let program = try await ChildProcess(
            builtProduct("DelegateProgram"), [b.redis.url, "list", "events"])
        #expect(await program.wait() == .exited(0), "\(program.stderr)")
        var told: [String] = []
        var lines: [String] = []
        for line in program.stdout.split(separator: "\n") {
            var words = line.split(separator: " ").map(String.init)
            if words[0] == "didPrefetch" {
                told.append(words[1])
                words[1] = "*"
            }
            lines.append(words.joined(separator: " "))
        }
        #expect(told.sorted() == urls.sorted())
        let source =
            "[0] SDWebImagePrefetcher, over three worker processes of which one is killed; * is a URL, each once"
        let text = "# list over three workers, \(mode)\n# \(source)\n\n" + lines.map { $0 + "\n" }.joined()
        try Golden.expect(text, is: "traces/list-over-three-workers-\(mode)")
    }
}
