import Dispatch
import Origin
import TestSupport
import Testing
import Threading

@testable import Prefetch
@testable import WebImage

@Suite("Two runs that write shards of one batch", .timeLimit(.minutes(5)))
struct ShardOwnerTests {
    private static let perShard = 10

    private let fixture: WorkerFixture
    private let chain: BatchChain
    private let queue: PrefetchQueue

    /// A list of three shards whose images are in the cache.
    init() async throws {
        let fixture = try await WorkerFixture()
        self.fixture = fixture
        let count = 3 * Self.perShard
        for index in 0..<count {
            fixture.origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 9, height: 9)))
        }
        queue = try fixture.queue()
        let urls = (0..<count).map { fixture.origin.url("/\($0).png") }
        let id = try await fixture.submit(urls, to: queue)
        _ = try await fixture.worker().run()
        chain = try await BatchChain.read(id, queue: queue)
    }

    /// * `sample`: called with each key, on the thread that writes; what it returns is in the JSON too.
    private func writer(
        _ owner: ShardOwner?, to out: String = "out", sample: @escaping @Sendable (String) -> String = { _ in "" }
    ) async throws -> (ShardExport, ImageShards) {
        let cache = try DiskCache(directory: fixture.folder.path("cache"))
        let export = try await BatchExport(chain, queue: queue, cache: cache)
        var options = ShardOptions(.webDataset)
        (options.perShard, options.sidecar) = (Self.perShard, .jsonl)
        let shards = try ImageShards(
            path: fixture.folder.path(out), options, member: "png", of: ShardBatch(chain), from: cache)
        let writer = ShardExport(chain, queue: queue, export: export, into: shards, from: cache, owner: owner) {
            columns in
            ShardForm(columns, caption: nil) { _, key in
                let json = Array("{\"key\":\"\(key)\(sample(key))\"}".utf8)
                return ShardSample(.success, nil, json: json, row: json, caption: nil)
            }
        }
        return (writer, shards)
    }

    private func names() -> [String] {
        fixture.folder.contents().filter { $0.hasPrefix("out/") }.map { String($0.dropFirst(4)) }.filter { !$0.isEmpty }
    }

    private func written() async throws -> [Int] {
        let shards = try #require(try await queue.batches.status(of: chain.root.id)?.shards)
        return [shards.written, shards.bytes, shards.open]
    }

    /// The files are those of an export, which owns nothing.
    private func expectWhole() async throws {
        let (export, shards) = try await writer(nil, to: "again")
        _ = try await export.writeAll()
        #expect(shards.tally.new == 3 && names().count == 9 && names().allSatisfy { !$0.hasPrefix(".") })
        var bytes = 0
        for name in names() {
            let file = try #require(fixture.folder.read("out/\(name)"))
            bytes += file.count
            // The stats say when they were written.
            if !name.hasSuffix(".json") { #expect(file == fixture.folder.read("again/\(name)"), "\(name)") }
        }
        #expect(try await written() == [3, bytes, 0])
    }

    @Test("One that is silent for longer than its lease loses the shard that it writes, and names nothing as whole")
    func silent() async throws {
        let (reached, goOn) = (Latch(), DispatchSemaphore(value: 0))
        let (slow, slowShards) = try await writer(ShardOwner(lease: 1)) { key in
            guard key == "000014" else { return "" }
            reached.open()
            goOn.wait()
            return " of the silent one"
        }
        async let first = slow.writeAll()
        await reached.wait()
        #expect(names() == ["00000.jsonl", "00000.tar", "00000_stats.json"])
        let (other, otherShards) = try await writer(ShardOwner())
        try await other.follow(nil, FeedLimit.Writer())
        #expect(otherShards.tally.shards == 3 && otherShards.tally.new == 2)
        let before = names().map { fixture.folder.read("out/\($0)") }
        goOn.signal()
        _ = try await first
        #expect(slowShards.tally.shards == 3 && slowShards.tally.new == 1 && slowShards.tally.images == 30)
        #expect(names().map { fixture.folder.read("out/\($0)") } == before)
        try await expectWhole()
    }

    @Test("One that finds a shard owned waits for its owner, and takes what the owner gives up")
    func waits() async throws {
        let (reached, goOn) = (Latch(), DispatchSemaphore(value: 0))
        let (slow, slowShards) = try await writer(ShardOwner()) { key in
            guard key == "000014" else { return "" }
            reached.open()
            goOn.wait()
            return ""
        }
        let task = Task { try await slow.writeAll() }
        await reached.wait()
        let waiting = Locked<[String]>([])
        let (other, otherShards) = try await writer(ShardOwner())
        async let second = other.writeAll { name in
            waiting.withLock { $0.append(name) }
            // The first one is stopped in its shard.
            task.cancel()
            goOn.signal()
        }
        await #expect(throws: PrefetchError.self) { try await task.value }
        _ = try await second
        #expect(waiting.withLock { $0 } == ["00001"] && otherShards.tally.shards == 3)
        #expect(slowShards.tally.new < 3 && slowShards.tally.new + otherShards.tally.new == 3)
        try await expectWhole()
    }

    @Test("A run that is alone takes what a killed one owned at once")
    func alone() async throws {
        let cache = try DiskCache(directory: fixture.folder.path("cache"))
        func owned(_ owner: ShardOwner) -> OwnedShards {
            OwnedShards(owner, of: chain.root.identity, from: cache, queue)
        }
        let killed = owned(ShardOwner())
        let lines = try await killed.count((0..<3).map { ($0, ($0 * 10)..<($0 * 10 + 10), 0) })
        #expect(lines == [.ended(10), .ended(10), .ended(10)])
        let owner = ShardOwner()
        owner.beginAlone()
        let (writer, shards) = try await writer(owner)
        try await writer.follow(nil, FeedLimit.Writer())
        #expect(shards.tally.new == 3)
        #expect(try await killed.record(1, bytes: 1, isFound: false) == false)
        try await expectWhole()
        // It is not alone for ever.
        #expect(try await owned(ShardOwner()).take(1))
        #expect(try await owned(owner).take(1) == false)
        #expect(try await killed.take(1) == false)
    }

    @Test("What was put and not completed is no shard, and is completed by whoever writes it next")
    func notCompleted() async throws {
        let (_, shards) = try await writer(ShardOwner())
        try shards.begin(ShardLayout.Shard(number: 0, entries: 0..<10), [])
        #expect(try shards.put() > 0)
        #expect(Set(names()) == ["00000.jsonl", "00000.tar", ".00000_stats.json"] && shards.tally.shards == 0)
        let (other, otherShards) = try await writer(ShardOwner())
        try await other.follow(nil, FeedLimit.Writer())
        #expect(otherShards.tally.new == 3 && otherShards.tally.images == 30)
        try await expectWhole()
    }
}
