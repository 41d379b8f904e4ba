import Glibc
import Origin
import Prefetch
import TestSupport
import Testing

/// A run works on its batch alone, whatever else is unfinished in its cache.
@Suite("A run is its own", .timeLimit(.minutes(5)))
struct OwnBatchTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer

    init() throws {
        origin = try OriginServer()
        let image = GeneratedImage.png(seed: 7, width: 16, height: 16)
        origin.setFallback { _ in OriginResponse(body: image) }
    }

    private var net: [String] { ["--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8", "-n", "2"] }

    private func urls(_ name: String, _ count: Int) -> String {
        list((0..<count).map { origin.url("/\(name)/\($0).png") }, "\(name).txt")
    }

    private func requests(_ name: String) -> Int { origin.requests.count { $0.path.hasPrefix("/\(name)/") } }

    /// Finished URLs and state of the only batch of a list.
    private func batch(_ name: String) async throws -> (finished: String, state: String) {
        let status = try await ended(["status", name, "--json", "--cache", folder.path("cache")])
        func member(_ key: String) -> String {
            guard let start = status.stdout.firstRange(of: "\"\(key)\":")?.upperBound else { return "" }
            return String(status.stdout[start...].prefix { $0 != "," && $0 != "}" })
        }
        return (member("finished"), member("state"))
    }

    @Test("What a stopped run has left stays as it is while another one runs, is named, and goes on with its own list")
    func stopped() async throws {
        let (first, second) = (urls("a", 400), urls("b", 60))
        let run = try await coord(["run", first, "--rate-per-host", "50"] + net)
        await origin.waitForRequests(20)
        run.signal(SIGINT)
        #expect(await run.wait() == .exited(75), "\(run.stderr)")
        let (left, asked) = (try await batch("a"), requests("a"))
        #expect(left.state == "\"running\"" && asked < 400)
        let other = try await ran(["run", second] + net)
        #expect(requests("b") == 60 && requests("a") == asked)
        #expect(
            other.stderr.contains("note: a-") && other.stderr.contains("of 400 URLs) and waits: "), "\(other.stderr)")
        // At the pace of its own list.
        #expect(!other.stderr.contains("politeness"), "\(other.stderr)")
        #expect(try await batch("a") == left)
        // The command that is named works as it is printed.
        let again = try await ran(["run", first] + net, says: "continuing a-")
        #expect(!again.stderr.contains("waits:"), "\(again.stderr)")
        #expect(requests("a") <= 400 + 8)
        #expect(try await batch("a").state == "\"done\"")
    }

    @Test(
        "Results are there whatever has happened to the file of the list",
        arguments: [
            "echo http://192.0.2.1/new >>$L", "sed -i 1d $L", "rm $L", "mv $L other", ": >$L", "rm $L && mkfifo $L",
        ])
    func edited(change: String) async throws {
        origin.setFallback { request in
            request.path.hasSuffix("/3.png")
                ? OriginResponse(status: 404) : OriginResponse(body: GeneratedImage.png(seed: 7, width: 16, height: 16))
        }
        let file = urls("a", 30)
        try await ran(["run", file] + net, exits: 3)
        let cache = ["--cache", folder.path("cache")]
        let before = try await ran(["export", "--format", "jsonl"] + cache)
        #expect(before.stdout.split(separator: "\n").count == 30)
        try await shell("L='\(file)'; \(change)")
        #expect(try await ran(["export", "--format", "jsonl"] + cache).stdout == before.stdout)
        #expect(try await ran(["failures"] + cache).stdout.hasPrefix("4: \(origin.url("/a/3.png"))"))
        try await ran(["export", "--format", "files", "--out", folder.path("images")] + cache)
        try await ran(["fsck"] + cache)
        origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 8, width: 16, height: 16)) }
        try await ran(["retry", "--manifest", folder.path("all.jsonl")] + net)
        let all = String(decoding: folder.read("all.jsonl") ?? [], as: UTF8.self).split(separator: "\n")
        #expect(all.count == 30 && all.allSatisfy { $0.contains(#""outcome":"downloaded""#) }, "\(all)")
    }

    @Test("A stopped run whose list was edited goes on with the command that is named, with the lines that it had")
    func editedInBetween() async throws {
        let (first, second) = (urls("a", 400), urls("b", 10))
        let run = try await coord(["run", first, "--rate-per-host", "50"] + net)
        await origin.waitForRequests(20)
        run.signal(SIGINT)
        #expect(await run.wait() == .exited(75), "\(run.stderr)")
        try await shell("sed -i 1d '\(first)'")
        let other = try await ran(["run", second] + net, says: "its list is not what it was; ")
        let words = other.stderr.split(separator: "its list is not what it was; ")[1].split(separator: " ")
        #expect(words[1] == "run" && words[2].hasSuffix(".list.txt"), "\(words)")
        try await ran(["run", String(words[2])] + net, says: "continuing a-")
        #expect(requests("a") <= 400 + 8)
        let batch = try await batch("a")
        #expect(batch.state == "\"done\"" && batch.finished == "400", "\(batch)")
    }

    @Test("A list that is larger than its copy may be is read in parts once it was edited, and what is lost is named")
    func editedWithoutCopy() async throws {
        let b = try await RemoteBatch()
        let path = b.list((0..<30).map { "http://192.0.2.1/\($0).png" }, "a.txt")
        try await b.done(["submit", path, "--name", "whole", "--list-copy-max", "100"])
        let whole = try #require(try await b.queue.batches.status(of: "whole"))
        #expect(access("\(whole.listCopies)/\(whole.listHash).list.sums", F_OK) == 0)
        // The same with parts of ten lines.
        let (lists, cache) = (b.folder.path("lists"), b.folder.path("cache"))
        #expect(mkdir(lists, 0o700) == 0 && mkdir(cache, 0o700) == 0)
        let list = try ListStream([path])
        try list.keep(in: lists, copyMost: 100, partSize: 10)
        var batch = NewBatch(list: list.list)
        batch.settings.turn.name = "a"
        _ = try await batch.open(in: b.queue)
        let feeder = ListFeeder(queue: b.queue, entries: BatchEntries(list), of: list.name, batch: "a")
        #expect(try await feeder.feed() == .sealed)
        _ = try await b.queue.batches.cancel(batch: "a")
        let export = ["export", "a", "--format", "jsonl", "--cache", cache]
        let before = try await b.done(export).stdout.split(separator: "\n")
        #expect(before.count == 30)
        _ = try await b.shell("sed -i 5d '\(path)'").wait()
        let after = try await b.done(export)
        #expect(after.stderr.contains("of its lines 1 to 10 are not known any more"), "\(after.stderr)")
        #expect(after.stdout.split(separator: "\n").elementsEqual(before.suffix(20)))
        let fsck = try await b.done(["fsck", "a", "--cache", cache])
        #expect(fsck.stderr.contains("was changed since it was queued"), "\(fsck.stderr)")
    }

    @Test("Two runs at once have each its own batch, and share the cache")
    func together() async throws {
        let (first, second) = (urls("a", 100), urls("b", 40))
        let slow = try await coord(["run", first, "--rate-per-host", "5"] + net)
        await origin.waitForRequests(2)
        let other = try await ran(["run", second] + net)
        #expect(requests("b") == 40)
        #expect(!other.stderr.contains("waits:"), "\(other.stderr)")
        // Its workers would have had all of these long ago.
        #expect(requests("a") < 75)
        slow.signal(SIGINT)
        #expect(await slow.wait() == .exited(75), "\(slow.stderr)")
        let last = try await ran(["run", first] + net)
        #expect(try await batch("a").state == "\"done\"", "\(last.stderr)")
    }
}
