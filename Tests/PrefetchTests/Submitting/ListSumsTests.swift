import Glibc
import TestSupport
import Testing

@testable import Prefetch

/// Lists that are larger than their copy may be.
@Suite("Digests of a list's parts", .timeLimit(.minutes(5)))
struct ListSumsTests {
    private let folder = TemporaryDirectory()

    init() { mkdir(folder.path("lists"), 0o700) }

    /// Entries of a part.
    private static let size = 500
    private static let count = 2 * size + 100

    /// With comments, blank lines, and a line end that is missing.
    private func lines(_ change: (Int) -> String? = { _ in nil }) -> String {
        var text = ""
        for index in 0..<Self.count {
            if index % 100 == 0 { text += "# \(index)\n\n" }
            text += change(index) ?? "http://h/\(index).png\n"
        }
        return String(text.dropLast())
    }

    /// The list as it was queued, and a batch of it with one skipped URL in each part.
    private func queued(_ f: QueueFixture) async throws -> BatchStatus {
        folder.write(Array(lines().utf8), to: "list.txt")
        let list = try ListStream([folder.path("list.txt")])
        try list.keep(in: folder.path("lists"), copyMost: 1_000, partSize: Self.size)
        var batch = NewBatch(list: list.list)
        batch.settings.turn.name = "b"
        batch.keepDetails = 0
        _ = try await batch.open(in: f.queue)
        let end = try await ListFeeder(
            queue: f.queue, entries: BatchEntries(list), of: list.name, batch: "b", window: "all"
        ).feed()
        #expect(end == .sealed)
        return try #require(try await f.queue.batches.status(of: "b"))
    }

    private func entries(
        _ status: BatchStatus, _ f: QueueFixture
    ) async throws -> (all: [PrefetchJob.Entry], lost: [ClosedRange<Int>]) {
        let entries = try await BatchEntries(of: status, queue: f.queue)
        var all: [PrefetchJob.Entry] = []
        try await entries.forEach { entry in
            all.append(entry)
            return true
        }
        return (all, entries.lost)
    }

    @Test("There are digests and no copy, and an unchanged or longer list needs neither")
    func unchanged() async throws {
        let f = try await QueueFixture()
        let status = try await queued(f)
        #expect(status.total == Self.count)
        #expect(
            folder.contents().filter { $0.hasPrefix("lists/") } == ["lists/", "lists/\(status.listHash).list.sums"])
        let (all, lost) = try await entries(status, f)
        #expect(all.count == Self.count && lost.isEmpty && !all.contains { $0.isLost })
        folder.write(Array((lines() + "\nhttp://h/more\n").utf8), to: "list.txt")
        #expect(try await entries(status, f).all == all)
    }

    @Test(
        "What is left of a list that was changed is found, wherever it is now; of what is lost the lines are named",
        arguments: [(1, ""), (size, "http://h/1\nhttp://h/2\n")])
    func changed(at: Int, text: String) async throws {
        let f = try await QueueFixture()
        let status = try await queued(f)
        let before = try await entries(status, f).all
        folder.write(Array(lines { $0 == at ? text : nil }.utf8), to: "list.txt")
        let (all, lost) = try await entries(status, f)
        let part = at / Self.size * Self.size..<min(Self.count, (at / Self.size + 1) * Self.size)
        #expect(all.count == Self.count)
        for (index, entry) in all.enumerated()
        where entry.isLost != part.contains(index) || !entry.isLost && entry != before[index] {
            Issue.record("\(index): \(entry)")
            break
        }
        #expect(lost.count == 1 && lost[0].contains(before[at].line))
        #expect(
            lost[0].lowerBound <= before[part.lowerBound].line && lost[0].upperBound >= before[part.upperBound - 1].line
        )
        // By place.
        let found = try await ListPlace.find(status, queue: f.queue)
        let reader = try EntryReader(path: found.path, pieces: found.pieces)
        for index in [Self.count - 1, 0, Self.size, Self.size + 20, 2 * Self.size]
            + (0..<50).map({ _ in Int.random(in: 0..<Self.count) })
        {
            if part.contains(index) {
                #expect(throws: PrefetchError.self) { try reader.entry(at: index) }
            } else {
                #expect(try reader.entry(at: index) == before[index])
            }
        }
    }

    @Test("A line before all and one within the second part: the first and the third part have other places")
    func moved() async throws {
        let f = try await QueueFixture()
        let status = try await queued(f)
        let before = try await entries(status, f).all
        let changed = lines { $0 == Self.size + 5 ? "x\n" : nil }
        folder.write(Array(("# new\n" + changed).utf8), to: "list.txt")
        let (all, lost) = try await entries(status, f)
        #expect(lost.count == 1 && all.count { $0.isLost } == Self.size)
        #expect(all[..<Self.size].elementsEqual(before[..<Self.size]))
        #expect(all[(2 * Self.size)...].elementsEqual(before[(2 * Self.size)...]))
    }

    @Test("Another list, or digests that others may have written, are as if there were none")
    func foreign() async throws {
        let f = try await QueueFixture()
        let status = try await queued(f)
        folder.write(Array("http://h/other\n".utf8), to: "list.txt")
        #expect(ListPlace.standing(of: status) == .changed)
        folder.write(Array(lines { $0 == 1 ? "x\n" : nil }.utf8), to: "list.txt")
        #expect(ListPlace.standing(of: status) != .changed)
        let sums = folder.path("lists/\(status.listHash).list.sums")
        chmod(sums, 0o666)
        #expect(ListPlace.standing(of: status) == .changed)
        chmod(sums, 0o600)
        let bytes = try #require(readFile(sums))
        for damaged in [
            Array(bytes.dropLast()), [UInt8](repeating: 255, count: bytes.count), [], Array(bytes.prefix(72)),
        ] {
            folder.write(damaged, to: "lists/\(status.listHash).list.sums")
            #expect(ListPlace.standing(of: status) == .changed)
        }
        unlink(folder.path("list.txt"))
        #expect(ListPlace.standing(of: status) == .missing)
    }

    @Test("Skipped URLs of lost lines have their outcome, and a retry has a place for each")
    func failures() async throws {
        let f = try await QueueFixture()
        _ = try await queued(f)
        _ = try await f.queue.batches.cancel(batch: "b")
        let status = try #require(try await f.queue.batches.status(of: "b"))
        folder.write(Array(lines { $0 == 1 ? "x\n" : nil }.utf8), to: "list.txt")
        let noted = Noted()
        var (count, unknown) = (0, 0)
        try await FailureReader(queue: f.queue, status: status, lost: { noted.add($0) }).forEach { failure in
            count += 1
            if failure.url.isEmpty { unknown += 1 }
            return failure.outcome == .cancelled
        }
        #expect(count == Self.count && unknown == Self.size && noted.ranges.count == 1)
        var places = 0
        try await BatchEntries(skippedOf: status, queue: f.queue).forEach { entry in
            places += 1
            return entry.isLost == (places <= Self.size) && entry.isInvalid == entry.isLost
        }
        #expect(places == Self.count)
        var results = 0
        try await BatchResults(BatchChain.read("b", queue: f.queue), queue: f.queue).forEach { line in
            results += 1
            return line.url.hasPrefix("http://h/")
        }
        #expect(results == Self.count - Self.size)
    }
}

private final class Noted: @unchecked Sendable {
    var ranges: [ClosedRange<Int>] = []
    func add(_ found: [ClosedRange<Int>]) { ranges += found }
}
