import Foundation
import Glibc
import TestSupport
import Testing
import Threading

@testable import Prefetch

@Suite("A list that is read while it is queued", .timeLimit(.minutes(5)))
struct ListStreamTests {
    private let folder = TemporaryDirectory()

    init() { mkdir(folder.path("lists"), 0o700) }

    /// Lines of 440 bytes: 150 are the beginning of a list.
    private static let folders = String(repeating: "a-folder-of-images/", count: 22)
    private static let headSize = 1 << 16

    private func lines(_ range: Range<Int>) -> String {
        range.map { "http://example.org/\(Self.folders)/\($0).png\n" }.joined()
    }

    private func stream(_ name: String, limit: Int? = nil) throws -> ListStream {
        let list = try ListStream([folder.path(name)], limit: limit, headSize: Self.headSize)
        try list.keep(in: folder.path("lists"))
        return list
    }

    private func write(_ text: String, _ name: String = "list.txt") { folder.write(Array(text.utf8), to: name) }

    private func feeder(_ list: ListStream, _ f: QueueFixture, _ id: String, hasGrown: Bool = false) -> ListFeeder {
        ListFeeder(
            queue: f.queue, entries: BatchEntries(list), of: list.name, batch: id, window: "all", jobSize: 2,
            hasGrown: hasGrown)
    }

    private func open(_ list: ListStream, _ f: QueueFixture) async throws -> String {
        let id = try await NewBatch(list: list.list).open(in: f.queue).id
        list.leaveToBatch()
        return id
    }

    private func status(_ id: String, _ f: QueueFixture) async throws -> BatchStatus {
        try #require(try await f.queue.batches.status(of: id))
    }

    /// Queues about so many URLs, as a feeder that is killed then.
    private func feed(_ list: ListStream, _ f: QueueFixture, _ id: String, stopAt count: Int) async throws {
        let task = Task {
            try await feeder(list, f, id).feed(pushed: { pushed in
                if pushed >= count { withUnsafeCurrentTask { $0?.cancel() } }
            })
        }
        guard case .failure(let error) = await task.result else { return }
        #expect((error as? PrefetchError)?.kind == .stopped || error is CancellationError, "\(error)")
    }

    /// A batch of 600 lines whose feeder was killed in mid list.
    private func begun(_ f: QueueFixture) async throws -> (id: String, status: BatchStatus) {
        write(lines(0..<600))
        let first = try stream("list.txt")
        let id = try await open(first, f)
        try await feed(first, f, id, stopAt: 300)
        return (id, try await status(id, f))
    }

    @Test("A short list is whole at once; of a longer one the total is about right, and exact at its end")
    func totals() async throws {
        write(lines(0..<100))
        let short = try stream("list.txt")
        #expect(short.isWhole && short.reading.total == 100 && short.estimate == nil)
        #expect(short.list.hash == (try URLList(path: folder.path("list.txt"))).hash)
        write(lines(0..<1_000))
        let long = try stream("list.txt")
        #expect(!long.isWhole && long.reading.total < 300 && long.list.total == 0)
        #expect(abs(try #require(long.estimate) - 1_000) < 30)
        let f = try await QueueFixture()
        let id = try await open(long, f)
        #expect(try await status(id, f).isOpen)
        #expect(try await feeder(long, f, id).feed() == .sealed)
        let sealed = try await status(id, f)
        #expect(sealed.total == 1_000 && sealed.isSealed && !sealed.isOpen && sealed.estimate == 0)
        let whole = try URLList(path: folder.path("list.txt"))
        #expect(sealed.listHash == whole.hash && sealed.listBytes == whole.bytes)
        #expect(folder.contents().contains("lists/\(whole.hash).list.zst"))
        #expect(try await f.findings(id) == [])
    }

    @Test(
        "Every line is checked: at the beginning before anything is queued, later with its number",
        arguments: [3, 600])
    func badLine(number: Int) async throws {
        let bad = #"{"url":"http://h/a.png","sha265":"00"}"# + "\n"
        write(lines(0..<(number - 1)) + bad + lines(number..<700))
        let message = "line \(number): there is no member 'sha265'"
        guard number > 3 else {
            let error = #expect(throws: PrefetchError.self) { try stream("list.txt") }
            #expect(error?.message == message)
            return
        }
        let f = try await QueueFixture()
        let list = try stream("list.txt")
        let id = try await open(list, f)
        let error = await #expect(throws: PrefetchError.self) { try await feeder(list, f, id).feed() }
        #expect(error?.kind == .unreadableList && error?.message == message)
        let before = try await status(id, f)
        #expect(before.isOpen && before.pushed == number - 1)
        // Once it is right, the batch goes on behind what was queued.
        write(lines(0..<(number - 1)) + "http://h/a.png\n" + lines(number..<700))
        let mended = try stream("list.txt")
        #expect(try mended.continuation(of: before) == .same)
        mended.join(before, isFed: false)
        #expect(try await feeder(mended, f, id).feed() == .sealed)
        #expect(try await status(id, f).total == 700)
        #expect(try await f.findings(id) == [])
    }

    @Test("A batch goes on with a list whose lines are those that were queued, whatever has become of the rest")
    func continued() async throws {
        let f = try await QueueFixture()
        let (id, before) = try await begun(f)
        #expect(before.isOpen && before.pushed >= 300 && before.pushed < 600 && before.listBytes > Self.headSize)
        let urls = before.pushed
        for (text, expected) in [
            (lines(0..<600), ListStream.Continuation.same), (lines(0..<610), .same),
            (lines(0..<urls), .same), (lines(0..<urls) + lines(0..<5), .same), (lines(0..<(urls - 1)), .different),
            (lines(1..<600), .different), ("#" + lines(0..<600), .different),
            (lines(0..<(urls - 1)) + lines(0..<300), .different),
        ] {
            write(text)
            #expect(try stream("list.txt").continuation(of: before) == expected, "\(text.utf8.count) bytes")
        }
        write(lines(0..<610))
        let again = try stream("list.txt")
        again.join(before, isFed: false)
        #expect(try await feeder(again, f, id).feed() == .sealed)
        let sealed = try await status(id, f)
        #expect(sealed.total == 610 && sealed.pushed == 610)
        // It has grown since.
        write(lines(0..<617))
        let grown = try stream("list.txt")
        #expect(try grown.continuation(of: sealed) == .grown)
        #expect(try stream("list.txt", limit: 100).continuation(of: sealed) == .different)
        grown.join(sealed, isFed: false)
        #expect(try await feeder(grown, f, id, hasGrown: true).feed() == .sealed)
        #expect(try await status(id, f).total == 617)
        #expect(try await f.findings(id) == [])
    }

    @Test("So does a table, whose lines are kept while it is read", arguments: ["t.csv", "t.csv.gz"])
    func table(name: String) async throws {
        func rows(_ range: Range<Int>) async throws {
            let rows = range.map { "\($0),http://example.org/\(Self.folders)/\($0).png,\"a, caption\"\n" }.joined()
            write("id,url,caption\n" + rows, "t.csv")
            guard name.hasSuffix(".gz") else { return }
            let gzip = try await ChildProcess("/bin/gzip", ["-n", "-f", folder.path("t.csv")])
            #expect(await gzip.wait() == .exited(0))
        }
        let f = try await QueueFixture()
        try await rows(0..<700)
        let first = try stream(name)
        #expect(!first.isWhole)
        let id = try await open(first, f)
        try await feed(first, f, id, stopAt: 400)
        let before = try await status(id, f)
        #expect(before.pushed >= 400 && before.pushed < 700 && before.sources == [folder.path(name)])
        try await rows(1..<700)
        #expect(try stream(name).continuation(of: before) == .different)
        try await rows(0..<710)
        let again = try stream(name)
        #expect(try again.continuation(of: before) == .same)
        again.join(before, isFed: false)
        #expect(try await feeder(again, f, id).feed() == .sealed)
        let sealed = try await status(id, f)
        #expect(sealed.total == 710)
        #expect(access(sealed.listPath, F_OK) != 0)
        var last = 0
        try await BatchEntries(of: sealed, queue: f.queue).forEach { entry async throws(PrefetchError) in
            last = entry.line
            return true
        }
        #expect(last == 711)
        #expect(try stream(name).continuation(of: sealed) == .same)
    }

    @Test("A limit ends it behind so many entries, in its beginning and later", arguments: [1, 7, 500, 800])
    func limit(count: Int) async throws {
        write("# head\n" + lines(0..<600))
        let f = try await QueueFixture()
        let list = try stream("list.txt", limit: count)
        #expect(list.isWhole == (count < 10))
        let id = try await open(list, f)
        #expect(try await feeder(list, f, id).feed() == .sealed)
        let sealed = try await status(id, f)
        #expect(sealed.total == min(count, 600))
        #expect(try stream("list.txt", limit: count).continuation(of: sealed) == .same)
        #expect(try stream("list.txt").continuation(of: sealed) == (count < 600 ? .grown : .same))
    }

    @Test("A short list that has grown before all of it was queued is the same batch, with the digest of all of it")
    func shortGrown() async throws {
        let f = try await QueueFixture()
        write(lines(0..<100))
        let first = try stream("list.txt")
        let id = try await open(first, f)
        let made = try await status(id, f)
        #expect(!made.isOpen && made.total == 100 && made.pushed == 0)
        write(lines(0..<120))
        let again = try stream("list.txt")
        #expect(again.isWhole)
        #expect(try again.continuation(of: made) == .grown)
        again.join(made, isFed: false)
        #expect(try await feeder(again, f, id, hasGrown: true).feed() == .sealed)
        let sealed = try await status(id, f)
        let whole = try URLList(path: folder.path("list.txt"))
        #expect(sealed.total == 120 && sealed.listHash == whole.hash && sealed.listBytes == whole.bytes)
        #expect(folder.contents().contains("lists/\(whole.hash).list.zst"))
        #expect(try await f.findings(id) == [])
    }

    @Test("A file that is put back after the batch went on with another one is not taken for its list")
    func putBack() async throws {
        let f = try await QueueFixture()
        let (id, before) = try await begun(f)
        #expect(rename(folder.path("list.txt"), folder.path("first.txt")) == 0)
        write(lines(0..<before.pushed) + lines(700..<900))
        let second = try stream("list.txt")
        #expect(try second.continuation(of: before) == .same)
        second.join(before, isFed: false)
        #expect(try await feeder(second, f, id).feed() == .sealed)
        #expect(rename(folder.path("first.txt"), folder.path("list.txt")) == 0)
        let sealed = try await status(id, f)
        #expect(try stream("list.txt").continuation(of: sealed) == .different)
        var last = ""
        try await BatchEntries(of: sealed, queue: f.queue).forEach { entry async throws(PrefetchError) in
            last = entry.url
            return true
        }
        #expect(last.hasSuffix("/899.png"))
    }

    @Test("The lines of a table that became no batch's list are gone with it")
    func abandoned() throws {
        write("url,x\nhttp://h/1,2\n", "t.csv")
        var list: ListStream? = try stream("t.csv")
        #expect(list != nil && folder.contents().contains { $0.hasSuffix(".list.txt") })
        list = nil
        #expect(!folder.contents().contains { $0.hasSuffix(".list.txt") })
    }
}
