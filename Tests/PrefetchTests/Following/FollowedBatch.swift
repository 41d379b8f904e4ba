import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch

/// A sealed batch of `http://h/0`, `http://h/1` … whose URLs end when the test says so.
struct FollowedBatch {
    let queue: PrefetchQueue
    let id: String
    let urls: [String]
    let list: URLList
    let folder = TemporaryDirectory()

    init(
        on queue: PrefetchQueue, _ count: Int, id: String = "b", keepDetails: Int = 1000,
        options: BatchOptions = BatchOptions()
    ) async throws {
        self.queue = queue
        self.id = id
        urls = (0..<count).map { "http://h/\($0)" }
        folder.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "list.txt")
        list = try URLList(path: folder.path("list.txt"))
        var batch = NewBatch(list: list)
        batch.settings.turn.name = id
        batch.keepDetails = keepDetails
        batch.settings.options = options
        #expect(try await batch.open(in: queue).id == id)
        #expect(try await ListFeeder(queue: queue, list: list, batch: id, window: "all").feed() == .sealed)
    }

    /// A queue of its own over a server.
    static func queue(_ url: String) throws -> PrefetchQueue {
        PrefetchQueue(
            connection: RedisConnection(try RedisConfiguration(url: url), name: "test"),
            name: "q\(UInt64.random(in: 0...UInt64.max))")
    }

    /// Ends one URL, as a worker's report does.
    func settle(_ index: Int, _ outcome: PrefetchOutcome = .downloaded, keepDetails: Int = 1000) async throws {
        let job = PrefetchJob(batch: id, base: index, entries: [.init(line: index + 1, url: urls[index])])
        let report = QueueFixture.report(job, [outcome], keepDetails: keepDetails)
        _ = try await queue.reports.send([report.current(in: queue)], worker: "w")
    }

    func follow(
        from start: OutcomeTail.Start = .beginning, on other: PrefetchQueue? = nil,
        notice: @escaping @Sendable (OutcomeTail.Notice) -> Void = { _ in }
    ) -> FollowerLog {
        FollowerLog(
            BatchEventReader(queue: other ?? queue, batch: id, from: start, notice: notice))
    }

    /// The two lines of the k-th URL.
    func lines(_ k: Int, _ index: Int, _ outcome: PrefetchOutcome = .downloaded) -> [String] {
        ["progress \(k)/\(urls.count)", "didPrefetch \(urls[index]) \(k)/\(urls.count) \(outcome.name)"]
    }
}

/// What a follower tells, as lines.
struct FollowerLog {
    let following: BatchEventReader
    private(set) var lines: [String] = []
    private(set) var hasEnded = false

    init(_ following: BatchEventReader) { self.following = following }

    /// Polls once.
    mutating func poll() async throws {
        guard let events = try await following.next() else {
            hasEnded = true
            return
        }
        lines += events.map(Self.line)
    }

    /// Polls until there are so many lines.
    mutating func read(_ count: Int) async throws {
        while lines.count < count, !hasEnded { try await poll() }
    }

    /// Polls until the end.
    mutating func readToEnd() async throws -> [String] {
        while !hasEnded { try await poll() }
        return lines
    }

    static func line(_ event: PrefetchEvent) -> String {
        switch event {
        case .progress(let finished, let total): "progress \(finished)/\(total)"
        case .didPrefetch(let url, let finished, let total, let outcome, _):
            "didPrefetch \(url) \(finished)/\(total) \(outcome?.name ?? "none")"
        case .didFinish(let total, let skipped): "didFinish \(total), \(skipped)"
        case .completion(let finished, let skipped): "completion \(finished), \(skipped)"
        }
    }
}
