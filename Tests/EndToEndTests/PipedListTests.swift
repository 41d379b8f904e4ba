import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing

/// Lists whose URLs are queued while the program that writes them still runs.
@Suite("A list that comes through a pipe", .timeLimit(.minutes(5)))
struct PipedListTests {
    /// The writing end of a FIFO, and `submit` that reads it.
    private struct Producer {
        let bench: FaultBench
        let submit: ChildProcess
        private let file: Int32

        init(_ bench: FaultBench, _ options: [String] = []) async throws {
            self.bench = bench
            let path = bench.folder.path("urls.fifo")
            #expect(mkfifo(path, 0o600) == 0)
            // Open for both, it waits for no reader.
            file = Glibc.open(path, O_RDWR | O_CLOEXEC)
            submit = try await bench.coord(["submit", path, "--name", "p"] + options)
        }

        func write(_ text: String) { #expect(Glibc.write(file, text, text.utf8.count) == text.utf8.count) }

        /// URLs of pictures, a line each.
        func write(_ numbers: Range<Int>) {
            write(numbers.map { bench.origin.url("/p/\($0).png") + "\n" }.joined())
        }

        func end() { close(file) }

        func status() async throws -> BatchStatus { try #require(try await bench.queue.batches.status(of: "p")) }
    }

    @Test("URLs are fetched and told as they come; the end of the pipe seals the batch")
    func streamed() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let workers = try await bench.workers(1)
        let producer = try await Producer(bench, ["--wait"])
        producer.write("# by hand\n")
        producer.write(0..<2)
        producer.write("\(bench.origin.url("/p/2.png"))")
        try await bench.untilFinished(2, "p")
        let first = try await producer.status()
        #expect(first.isOpen && !first.isSealed && first.total == 2 && first.pushed == 2 && first.estimate == 0)
        let told = try await bench.done(["status", "p"]).stdout
        #expect(told.contains(", 2 URLs so far; the rest comes through a pipe"), "\(told)")
        // Who follows it before its end sees all of it.
        let watch = try await bench.coord(["watch", "p", "--json", "--from-start"])
        try await until { watch.stdout.contains("/p/1.png") }
        producer.write("\n")
        producer.write(3..<40)
        try await bench.untilFinished(40, "p")
        #expect(try await producer.status().total == 40)
        #expect(producer.submit.isRunning)
        producer.end()
        #expect(await producer.submit.wait() == .exited(0), "\(producer.submit.stderr)")
        #expect(producer.submit.stdout.contains("finished 40 of 40: 40 images"), "\(producer.submit.stdout)")
        #expect(await watch.wait() == .exited(0), "\(watch.stderr)")
        for number in 0..<40 { #expect(watch.stdout.contains("/p/\(number).png\"")) }
        let last = try await producer.status()
        #expect(!last.isOpen && last.isSealed && last.total == 40)
        #expect(access(last.listPath, F_OK) != 0 && last.sources == [bench.folder.path("urls.fifo")])
        let words = ["export", "p", "--format", "jsonl", "--cache", bench.folder.path("cache")]
        let results = try await bench.done(words).stdout
        #expect(results.split(separator: "\n").count == 40 && results.contains(#""line":41,"#), "\(results)")
        try await bench.expectAllThere(40, "p", workers: workers)
    }

    @Test("One whose reader was killed is queued to its end out of the file that has its lines")
    func resumed() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let producer = try await Producer(bench)
        producer.write(0..<7)
        try await until { try await bench.queue.batches.status(of: "p")?.pushed == 7 }
        producer.submit.signal(SIGKILL)
        await producer.submit.wait()
        producer.end()
        let path = try await producer.status().listPath
        let again = try await bench.done(["submit", "--resume", path])
        #expect(again.stderr.contains("continuing p: 7 URLs are queued"), "\(again.stderr)")
        let status = try await producer.status()
        #expect(status.isSealed && status.total == 7)
        #expect(try URLList(path: path).hash == status.listHash)
        try await bench.expectAllThere(7, "p", workers: try await bench.workers(1))
    }

    @Test("Writes that Redis has lost are made again out of the file")
    func lost() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let producer = try await Producer(bench)
        producer.write(0..<20)
        try await until { try await bench.queue.batches.status(of: "p")?.pushed == 20 }
        try await bench.redis("DEL", bench.queue.keys.jobs("p"))
        try await bench.redis("HSET", bench.queue.keys.batch("p"), "pushed", "0", "total", "0")
        producer.write(20..<25)
        try await until { try await bench.queue.batches.status(of: "p")?.pushed == 25 }
        producer.end()
        #expect(await producer.submit.wait() == .exited(0), "\(producer.submit.stderr)")
        #expect(producer.submit.stderr.contains("queued 25 URLs as p"), "\(producer.submit.stderr)")
        try await bench.expectAllThere(25, "p", workers: try await bench.workers(1))
    }

    @Test("A line that is none of a list is named; what came before it stays queued")
    func refused() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let producer = try await Producer(bench)
        producer.write(0..<3)
        try await until { try await bench.queue.batches.status(of: "p")?.pushed == 3 }
        producer.write("{\"url\":\"http://h/a.png\",\"sha265\":\"00\"}\n")
        #expect(await producer.submit.wait() == .exited(65), "\(producer.submit.stderr)")
        #expect(producer.submit.stderr.contains("line 4"), "\(producer.submit.stderr)")
        #expect(producer.submit.stderr.contains("what comes before it is queued as p"), "\(producer.submit.stderr)")
        producer.end()
        let status = try await producer.status()
        #expect(status.state == .running && status.isOpen && status.pushed == 3)
        try await bench.done(["fsck"])
    }

    @Test("What cannot be made a batch leaves no copy of its list")
    func taken() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        try await bench.submit(1, "p")
        let list = bench.list(3, "more")
        #expect(mkdir(bench.folder.path("tmp"), 0o700) == 0)
        let command =
            "cat '\(list)' | '\(builtProduct("prefetch-coord"))' submit - --name p --redis '\(bench.redis.url)'"
        let submit = try await ChildProcess(
            "/bin/sh", ["-c", command],
            environment: ["TMPDIR": bench.folder.path("tmp")])
        #expect(await submit.wait() == .exited(78), "\(submit.stderr)")
        #expect(submit.stderr.contains("there is a batch 'p' already"), "\(submit.stderr)")
        let left = bench.folder.contents().filter { $0.hasPrefix("tmp/") }
        #expect(left == ["tmp/"], "\(left)")
    }

    @Test("A signal leaves what is queued, and says how to end it")
    func stopped() async throws {
        let bench = try await FaultBench(appendOnly: false, delay: 0)
        let producer = try await Producer(bench)
        producer.write(0..<3)
        try await until { try await bench.queue.batches.status(of: "p")?.pushed == 3 }
        producer.submit.signal(SIGINT)
        #expect(await producer.submit.wait() == .exited(75), "\(producer.submit.stderr)")
        let path = try await producer.status().listPath
        #expect(producer.submit.stderr.contains("submit --resume \(path)"), "\(producer.submit.stderr)")
        producer.end()
        try await bench.done(["submit", "--resume", path])
        #expect(try await producer.status().isSealed)
    }
}
