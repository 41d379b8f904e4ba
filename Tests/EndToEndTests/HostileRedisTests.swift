import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

/// A Redis into which somebody wrote what no program of ours writes: no program of ours ends of it by a signal, or does not end.
@Suite("A hostile Redis", .timeLimit(.minutes(5)))
struct HostileRedisTests {
    private static let values = [
        String(Int.max), String(Int.min), "-1", "1e308", "nan", "", "\u{1B}[2J\u{202E}",
        String(repeating: "9", count: 1 << 20),
    ]
    /// Of every command that reads: its words.
    private static let commands: [[String]] = [
        ["status"], ["status", "b", "--json"], ["why", "--oldest", "c"], ["failures", "b"],
        ["export", "--format", "html", "b"],
        ["metrics"],
        ["fsck"], ["dash", "--once"], ["workers"], ["workers", "--json"], ["why", "http://h/b/1"], ["blacklist"],
        ["export", "b", "--format", "jsonl"],
    ]

    /// zlib's CRC-32 of a text, as a job's head has it.
    private static func crc(_ text: String) -> String {
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in text.utf8 {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? 0xEDB8_8320 ^ (crc >> 1) : crc >> 1 }
        }
        let digits = String(~crc, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    private func redis(_ b: RemoteBatch, _ words: [String]) async throws -> RedisValue {
        try await b.queue.connection.command(words.map { RedisArgument($0) })
    }

    /// A batch of 4 URLs that ended, one that runs with one of its two URLs open, a worker and a troubled host.
    private func populated() async throws -> RemoteBatch {
        let b = try await RemoteBatch()
        let urls = (0..<4).map { "http://h/b/\($0)" }
        try await b.submit(urls, as: "b")
        for (index, url) in urls.enumerated() {
            try await b.settle("b", index, url, index == 1 ? .httpError : .downloaded)
        }
        try await b.submit(["http://h/c/0", "http://h/c/1"], as: "c")
        #expect(
            try await b.queue.workers.join(
                worker: "w", lease: 600_000, about: [("in_flight", "1"), ("rss", "1"), ("cpu", "1")]))
        _ = try await b.queue.jobs.claim(worker: "w", sequence: 1, count: 1, lease: 600_000)
        try await b.settle("c", 0, "http://h/c/0", .timeout)
        _ = try await redis(b, ["HSET", b.queue.keys.hosts, "h", "silent 9000000000000 1 3 3001 gone"])
        return b
    }

    /// Sets every field of every hash of the queue but those that say what a batch is.
    private func spoil(_ b: RemoteBatch, _ value: String, keeping kept: Set<String> = ["state"]) async throws {
        let keys = try await redis(b, ["KEYS", "\(b.queue.keys.root):*"]).array ?? []
        for key in keys.compactMap(\.string) {
            guard try await redis(b, ["TYPE", key]).string == "hash" else { continue }
            let fields = (try await redis(b, ["HKEYS", key]).array ?? []).compactMap(\.string)
            for field in fields where !kept.contains(field) {
                _ = try await redis(b, ["HSET", key, field, value])
            }
        }
    }

    private func run(_ b: RemoteBatch, _ words: [String], _ note: String) async throws -> ChildProcess {
        let child = try await b.ended(words)
        let end = await child.wait()
        guard case .exited(let code) = end else {
            Issue.record("\(words.joined(separator: " ")) with \(note): \(end) \(child.stderr.suffix(300))")
            return child
        }
        // docs/OPERATIONS.md, exit codes.
        #expect(
            [0, 1, 2, 64, 65, 66, 69, 70, 73, 74, 76, 77, 78, 75, 79].contains(code), "\(words) with \(note): \(code)")
        return child
    }

    @Test("Every command that reads ends by itself, whatever all fields say", arguments: Self.values.indices)
    func everyCommand(number: Int) async throws {
        let b = try await populated()
        let value = Self.values[number]
        try await spoil(b, value)
        for words in Self.commands {
            let child = try await run(b, words, String(value.prefix(20)))
            let said = child.stdout + child.stderr
            #expect(!said.contains("\u{1B}[2J") && !said.contains("\u{202E}"), "\(words)")
        }
    }

    @Test("One number out of range at a time, of those that are counted with most")
    func singleFields() async throws {
        let b = try await populated()
        for (key, field) in [
            ("b", "total"), ("b", "o12"), ("b", "created"), ("c", "pushed"), ("c", "created"), ("c", "total"),
        ] {
            let name = b.queue.keys.batch(key)
            let before = try await redis(b, ["HGET", name, field]).string ?? ""
            for value in [Int.max, .min] {
                _ = try await redis(b, ["HSET", name, field, String(value)])
                for words in [
                    ["status"], ["failures", key], ["metrics"], ["fsck"], ["export", "--format", "html", key],
                ] {
                    _ = try await run(b, words, "\(key) \(field)=\(value)")
                }
            }
            _ = try await redis(b, ["HSET", name, field, before])
        }
    }

    @Test("Names out of Redis are shown, and move no terminal")
    func names() async throws {
        let b = try await populated()
        let id = "x\u{1B}[2J\u{202E}\u{61C}\ny"
        for (old, new) in [("b", id)] {
            _ = try await redis(b, ["RENAME", b.queue.keys.batch(old), b.queue.keys.batch(new)])
            _ = try await redis(b, ["ZADD", b.queue.keys.batches, "1", new])
        }
        #expect(
            try await b.queue.workers.join(
                worker: "v\u{1B}[2J\u{202E}\u{61C}", lease: 600_000, about: [("host", "\u{1B}[2J")]))
        for words in [
            ["status"], ["status", id], ["metrics"], ["workers"], ["dash", "--once"], ["fsck"], ["failures", id],
            ["pause", id],
            ["rm", "--yes", id],
        ] {
            let child = try await run(b, words, "a name")
            for said in [child.stdout, child.stderr] {
                for bad in ["\u{1B}[2J", "\u{202E}", "\u{61C}", "\ny"] {
                    #expect(!said.contains(bad), "\(words): \(said.debugDescription)")
                }
            }
        }
    }

    @Test(
        "A worker goes on beside a running batch whose fields say anything, and another batch comes to its end with exact counts",
        arguments: [String(Int.max), String(Int.min), "nan", "1e308", ""])
    func worker(value: String) async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        for index in 0..<20 {
            origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 9, height: 9)))
        }
        try await b.submit((0..<10).map { origin.url("/\($0).png") }, as: "bad")
        try await spoil(b, value, keeping: ["state", "priority", "ready", "options"])
        // A job that stands for more bytes than a worker has.
        let line =
            "1\thttp://h/\(String(repeating: "x", count: 60_000))\n" + String(repeating: "+60009\t\n", count: 255)
        let bomb = "prefetch-job 1 bad:0:256 \(Self.crc(line))\n\(line)"
        _ = try await redis(b, ["LPUSH", b.queue.keys.jobs("bad"), bomb])
        try await b.submit((10..<20).map { origin.url("/\($0).png") }, as: "good")
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"),
            ["--redis", b.redis.url, "--cache", b.folder.path("cache"), "--allow-net", "127.0.0.0/8"])
        try await until { try await b.queue.batches.status(of: "good")?.state == .done || !worker.isRunning }
        let status = try #require(try await b.queue.batches.status(of: "good"))
        #expect(
            status.counts[.downloaded] == 10 && status.counts.finished == 10 && status.total == 10, "\(worker.stderr)")
        #expect(worker.isRunning, "\(worker.stderr)")
        worker.signal(SIGTERM)
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
    }
}
