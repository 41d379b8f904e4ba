import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("The blacklist", .timeLimit(.minutes(5)))
struct FailedURLsTests {
    private func all(_ f: QueueFixture) async throws -> [String] {
        var urls: [String] = []
        try await f.queue.failedURLs.forEach { group throws(PrefetchError) in
            urls += group.map(\.url)
            return true
        }
        return urls
    }

    @Test("What is added by hand is listed without a reason, and lapses for nobody")
    func byHand() async throws {
        let f = try await QueueFixture()
        #expect(try await f.queue.failedURLs.add(["http://h/b", "http://h/a", "http://h/b"]) == 2)
        #expect(try await f.queue.failedURLs.add(["http://h/a", "http://h/c"]) == 1)
        #expect(try await f.queue.failedURLs.add([]) == 0)
        #expect(try await all(f) == ["http://h/a", "http://h/b", "http://h/c"])
        // The oldest date there can be, left behind by an SREM by hand, and beside a member: no reading may let these lapse.
        try await f.redis(
            "HSET", f.keys.failedMeta, "http://h/d", "1 1 1 1 httpError 404 b no", "http://h/a", "1 1 1 1 x 0 b no")
        #expect(try await f.queue.failedURLs.add(["http://h/d", "http://h/a"]) == 1)
        #expect(try await f.redis("HLEN", f.keys.failedMeta).int == 0)
        let listed = try await f.queue.failedURLs.listed(
            ["http://h/a", "http://h/d", "http://h/x"], ttl: BlacklistTTL(0.001))
        #expect(listed.keys.sorted() == [0, 1])
        #expect(listed[1] == Blacklist.Listing(entry: FailedURLEntry(meta: "")))
        let found = try await f.queue.failedURLs.find("http://h/d")
        #expect(found.entry == FailedURLEntry(meta: "") && found.at > 1_700_000_000_000)
        #expect(try await f.queue.failedURLs.find("http://h/x").entry == nil)
    }

    @Test("Taking off takes the reason along, and all of them go at once")
    func removal() async throws {
        let f = try await QueueFixture()
        try await f.fill("b", sizes: [3])
        try await f.join("w")
        let job = try await f.claim("w", 1)[0].job
        let report = QueueFixture.report(job, [.httpError, .badImage, .httpError]) { item in
            item.failure?.httpStatus = item.outcome == .httpError ? 404 : nil
            item.list = item.failure?.url
        }
        _ = try await f.queue.reports.send([report], worker: "w")
        let urls = (0..<3).map { "http://h/b/\($0)" }
        #expect(try await all(f) == urls)
        let entry = try #require(try await f.queue.failedURLs.find(urls[0]).entry)
        #expect(entry.outcome == .httpError && entry.httpStatus == 404 && entry.count == 1 && entry.batch == "b")
        #expect(entry.first > 0 && entry.first == entry.last && entry.detail == "no")
        #expect(try await f.queue.failedURLs.remove([urls[0], "http://h/none"]) == 1)
        #expect(try await f.queue.failedURLs.remove([urls[0]]) == 0)
        #expect(try await f.queue.failedURLs.remove([]) == 0)
        #expect(try await all(f) == Array(urls.dropFirst()))
        #expect(try await f.redis("HEXISTS", f.keys.failedMeta, urls[0]).int == 0)
        #expect(try await f.queue.failedURLs.count() == 2)
        try await f.queue.failedURLs.removeAll()
        #expect(try await f.redis("EXISTS", f.keys.failed, f.keys.failedMeta).int == 0)
        #expect(try await all(f) == [])
        try await f.queue.failedURLs.removeAll()
    }

    /// What stands where, for comparing all of it.
    private func state(_ f: QueueFixture) async throws -> [[String]] {
        var all: [[String]] = []
        for words in [["SMEMBERS", f.keys.failed], ["HKEYS", f.keys.failedMeta]] {
            let reply = try await f.queue.connection.command(words.map { RedisArgument($0) })
            all.append((reply.array ?? []).compactMap(\.string).sorted())
        }
        for key in [f.keys.failedExpiring, f.keys.failedPermanent] {
            all.append(try await f.redis("ZRANGE", key, "0", "-1").array?.compactMap(\.string) ?? [])
        }
        return all
    }

    @Test("What a batch lists lapses by its own time to live, whoever asks; a sweep takes it off")
    func lapses() async throws {
        let f = try await QueueFixture()
        try await f.fill("b", sizes: [2, 2])
        try await f.join("w")
        func list(_ job: PrefetchJob, ttl: Double) async throws {
            var report = QueueFixture.report(job, [.httpError, .httpError]) {
                $0.list = $0.failure?.url
                $0.failure?.httpStatus = 404
            }
            report.ttl = BlacklistTTL(ttl)
            _ = try await f.queue.reports.send([report], worker: "w")
        }
        let jobs = try await f.claim("w", 1, count: 2).map(\.job)
        try await list(jobs[0], ttl: 10)
        try await list(jobs[1], ttl: 0)
        _ = try await f.queue.failedURLs.add(["http://h/hand"])
        let (short, long) = (["http://h/b/0", "http://h/b/1"], ["http://h/b/2", "http://h/b/3"])
        #expect(try await state(f) == [short + long + ["http://h/hand"], short + long, short, long])
        func beat() async throws {
            _ = try await f.queue.workers.beat(worker: "w", lease: 60_000, trouble: false, batches: [], about: [])
        }
        try await beat()
        #expect(try await state(f)[2] == short)
        try await f.redis("HINCRBY", f.keys.clock, "ahead", "10100")
        // Whoever asks, though it would wait for longer itself; an entry of another batch lapses earlier for who wants that.
        func lapsed(_ ttl: Double) async throws -> [Int: Bool] {
            try await f.queue.failedURLs.listed(
                ["http://h/x", short[0], long[0], "http://h/hand"], ttl: BlacklistTTL(ttl)
            ).mapValues(\.hasLapsed)
        }
        #expect(try await lapsed(0) == [1: true, 2: false, 3: false])
        #expect(try await lapsed(9) == [1: true, 2: true, 3: false])
        #expect(try await lapsed(3600) == [1: true, 2: false, 3: false])
        try await beat()
        #expect(try await state(f) == [long + ["http://h/hand"], long, [], long])
        // By hand: no batch's any more, and no sweep's.
        #expect(try await f.queue.failedURLs.add([long[0]]) == 0)
        #expect(try await state(f) == [long + ["http://h/hand"], [long[1]], [], [long[1]]])
        #expect(try await f.queue.failedURLs.remove([long[1]]) == 1)
        #expect(try await state(f) == [[long[0], "http://h/hand"], [], [], []])
    }

    @Test("More than the limit go oldest first, from both kinds, some a call; those added by hand neither count nor go")
    func limit() async throws {
        let f = try await QueueFixture()
        try await f.join("w")
        let now = try await f.queue.failedURLs.find("x").at
        func put(_ url: String, _ last: Int, key: String, score: Int) async throws {
            try await f.redis("SADD", f.keys.failed, url)
            try await f.redis("HSET", f.keys.failedMeta, url, "1 \(last) 1 0 httpError 404 b no")
            try await f.redis("ZADD", key, String(score), url)
        }
        for number in 0..<300 {
            let last = now - 100_000 + 10 * number
            let stays = number % 3 == 0
            try await put(
                "u\(number)", last, key: stays ? f.keys.failedPermanent : f.keys.failedExpiring,
                score: stays ? last : last + 1_000_000)
        }
        _ = try await f.queue.failedURLs.add(["hand"])
        func beat() async throws -> Int? {
            try await f.queue.workers.beat(worker: "w", lease: 60_000, trouble: false, batches: [], about: [])?.unlisted
        }
        #expect(try await beat() == nil)
        #expect(try await f.queue.failedURLs.limit() == Blacklist.Limit())
        try await f.redis("HSET", f.keys.failedLimit, "max", "50")
        #expect(try await beat() == 200)
        #expect(try await state(f)[0] == (["hand"] + (200..<300).map { "u\($0)" }).sorted())
        for _ in 0..<2 { #expect(try await beat() == 250) }
        #expect(try await state(f)[0] == (["hand"] + (250..<300).map { "u\($0)" }).sorted())
        #expect(try await state(f)[1].count == 50)
        let limit = try await f.queue.failedURLs.limit()
        #expect(limit.most == 50 && limit.removed == 250)
        try await f.queue.failedURLs.removeAll()
        #expect(try await state(f) == [[], [], [], []])
        #expect(try await f.queue.failedURLs.limit().removed == 0)
    }

    @Test(
        "A long list comes in ordered blocks, each member once and with its own reason, and stops where it is told to")
    func blocks() async throws {
        let f = try await QueueFixture()
        let count = 25_000
        for start in stride(from: 0, to: count, by: 1000) {
            #expect(try await f.queue.failedURLs.add((start..<(start + 1000)).map { "http://h/\($0)" }) == 1000)
        }
        try await f.redis("HSET", f.keys.failedMeta, "http://h/777", "1 2 3 0 httpError 410 b gone, for good")
        var seen: Set<String> = []
        var sizes: [Int] = []
        var reasons: [String: Int] = [:]
        try await f.queue.failedURLs.forEach { group throws(PrefetchError) in
            #expect(zip(group, group.dropFirst()).allSatisfy { $0.url < $1.url })
            for failed in group {
                #expect(seen.insert(failed.url).inserted)
                if failed.entry != FailedURLEntry(meta: "") { reasons[failed.url] = failed.entry.httpStatus }
            }
            sizes.append(group.count)
            return true
        }
        #expect(seen == Set((0..<count).map { "http://h/\($0)" }))
        #expect(sizes.count >= 2 && sizes.allSatisfy { $0 < 12_000 })
        #expect(reasons == ["http://h/777": 410])
        var calls = 0
        try await f.queue.failedURLs.forEach { _ throws(PrefetchError) in
            calls += 1
            return false
        }
        #expect(calls == 1)
    }

    @Test(arguments: [
        ("http://h/a", true), ("HTTPS://h/ü", true), ("h/a", false), ("", false), ("# http://h/a", false),
        (" http://h/a", false), ("http://h/a ", false), ("http://h/a\nb", false), ("http://h/\u{7F}", false),
    ])
    func onlyWhatReadsBackIsALineOfAList(text: String, isURL: Bool) {
        #expect(URLLines.isURL(text) == isURL)
    }

    @Test func lineOfTheGreatestLengthIsReadAndALongerOneIsNone() {
        let longest = "http://h/" + String(repeating: "a", count: URLList.longestURL - 9)
        #expect(URLLines.isURL(longest) && !URLLines.isURL(longest + "a"))
        #expect(URLLines.entries([longest, longest + "a", "#x", ""]).map(\.isInvalid) == [false, true, true, true])
    }

    @Test("A list is read in groups with its line numbers; what is no URL is among them")
    func groups() async throws {
        let folder = TemporaryDirectory()
        let lines = ["\u{FEFF}http://h/0\r", "", "# no", "nope"] + (4..<2500).map { "http://h/\($0)" }
        folder.write(Array(lines.joined(separator: "\n").utf8), to: "l")
        var sizes: [Int] = []
        var entries: [PrefetchJob.Entry] = []
        try await URLLines.forEachGroup(path: folder.path("l")) { group throws(PrefetchError) in
            sizes.append(group.count)
            entries += group
        }
        #expect(sizes == [1000, 1000, 498])
        #expect(entries[0] == .init(line: 1, url: "http://h/0"))
        #expect(entries[1] == .init(line: 4, url: "nope", isInvalid: true))
        #expect(entries.last == .init(line: 2500, url: "http://h/2499"))
        await #expect(throws: PrefetchError.self) {
            try await URLLines.forEachGroup(path: folder.path) { _ throws(PrefetchError) in }
        }
    }
}
