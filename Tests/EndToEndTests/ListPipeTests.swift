import Foundation
import Glibc
import Prefetch
import TestSupport
import Testing
import WebImage

/// Lists that can be read only once, by their path, with the built programs.
@Suite("Lists that are pipes", .timeLimit(.minutes(5)))
struct ListPipeTests {
    private let program = "'\(builtProduct("prefetch-coord"))'"

    private func shell(_ command: String, _ folder: TemporaryDirectory) async throws -> ChildProcess {
        let child = try await ChildProcess(
            "/usr/bin/env", ["bash", "-c", command],
            environment: ["TMPDIR": folder.path("")])
        await child.wait()
        return child
    }

    /// Lines of a batch's list, out of its copy.
    private func linesOf(_ status: BatchStatus, _ queue: PrefetchQueue) async throws -> Int {
        var lines = 0
        try await BatchEntries(of: status, queue: queue).forEach { _ async throws(PrefetchError) in
            lines += 1
            return true
        }
        return lines
    }

    private func urls(_ range: Range<Int>) -> [String] { range.map { "http://192.0.2.1/\($0).png" } }

    @Test(
        "submit takes a list from a pipe by its path, a FIFO and /dev/stdin, packed or as a table, as from -"
    )
    func queued() async throws {
        let b = try await RemoteBatch()
        let list = b.list(urls(0..<12))
        let table = b.list(["id,image"] + urls(0..<5).map { "1,\($0)" }, "table.csv")
        let fifo = b.folder.path("list.fifo")
        #expect(mkfifo(fifo, 0o600) == 0)
        let at = "--redis '\(b.redis.url)'"
        for (name, command, total, stem) in [
            ("a", "\(program) submit <(cat '\(list)') --name a \(at)", 12, "pipe"),
            ("b", "\(program) submit /dev/stdin --name b \(at) < <(head -3 '\(list)')", 3, "stdin"),
            ("c", "cat '\(list)' >'\(fifo)' & \(program) submit '\(fifo)' --name c \(at)", 12, "list"),
            ("d", "\(program) submit <(gzip -c '\(list)') --name d \(at)", 12, "pipe"),
            ("e", "\(program) submit <(cat '\(table)') --input-format csv --name e \(at)", 5, "pipe"),
        ] {
            let child = try await shell(command, b.folder)
            #expect(await child.wait() == .exited(0), "\(command): \(child.stderr)")
            let status = try #require(try await b.queue.batches.status(of: name), "\(command)")
            #expect(status.total == total && status.pushed == total, "\(command): \(status.pushed) of \(status.total)")
            // What it was copied into is a file that can be read again.
            let lines = try await linesOf(status, b.queue)
            #expect(lines == (name == "b" ? 3 : total) && !status.isOpen, "\(command): \(lines)")
            #expect(status.sources == [name == "c" ? fifo : stem == "stdin" ? "-" : stem], "\(status.sources)")
        }
    }

    @Test("run takes a list from a pipe by its path, and other commands use its copy")
    func others() async throws {
        let folder = TemporaryDirectory()
        folder.write(Array((urls(0..<3).joined(separator: "\n") + "\n").utf8), to: "urls.txt")
        let (list, cache) = (folder.path("urls.txt"), folder.path("cache"))
        let run = try await shell(
            "\(program) run <(cat '\(list)') --cache '\(cache)' --options fromCacheOnly -n 1 -q", folder)
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        #expect(run.stdout.contains("finished 3 of 3: 0 images, 3 skipped"), "\(run.stdout)")
        #expect(mkdir(folder.path("images"), 0o700) == 0)
        for (command, text) in [
            ("failures --cache '\(cache)'", "1: http://192.0.2.1/0.png  notCached"),
            ("export --format tsv --cache '\(cache)'", "3\thttp://192.0.2.1/2.png\tnotCached"),
            ("export --format html --cache '\(cache)'", "<!DOCTYPE html>"),
            ("watch --json --from-start --cache '\(cache)' || true", "http://192.0.2.1/1.png"),
            (
                "cache import '\(folder.path("images"))' --from files --list <(cat '\(list)') --cache '\(cache)'",
                "3 without a file"
            ),
            ("blacklist add - --cache '\(cache)' < '\(list)'", "added 3 URLs"),
            ("fsck pipe --cache '\(cache)'", "1 batch, everything agrees"),
            (
                "retry --cache '\(cache)' -n 1 -q || true",
                "finished 3 of 3: 0 images, 3 skipped"
            ),
        ] {
            let child = try await shell("\(program) \(command)", folder)
            #expect(await child.wait() == .exited(0), "\(command): \(child.stderr)")
            #expect(child.stdout.contains(text), "\(command): \(child.stdout) \(child.stderr)")
        }
        // Nothing but the copy of the batch's list is left, and its lines, which were read.
        #expect(!folder.contents().contains { $0.contains("pipe-") }, "\(folder.contents())")
        let left = TemporaryDirectory.contents(TemporaryDirectory.runState(of: cache) + "/lists")
        #expect(left.map { String($0.dropFirst(64)) }.sorted() == [".list.txt", ".list.zst"], "\(left)")
    }

    @Test("A list without a URL is an error of every command that reads one, unless it may be empty")
    func empty() async throws {
        let folder = TemporaryDirectory()
        let cache = folder.path("cache")
        _ = try DiskCache(directory: cache)
        folder.write(Array("# a comment\n\n \r\n".utf8), to: "none.txt")
        #expect(mkdir(folder.path("images"), 0o700) == 0)
        let none = folder.path("none.txt")
        let at = "--cache '\(cache)'"
        for command in [
            "run '\(none)' -n 1 -q", "run <(true) -n 1 -q", "run /dev/null -n 1 -q", "submit '\(none)'",
            "submit - <'\(none)'",
            "cache import '\(folder.path("images"))' --from files --list '\(none)'",
        ] {
            let refused = try await shell("\(program) \(command) \(at)", folder)
            #expect(await refused.wait() == .exited(65), "\(command): \(refused.stdout) \(refused.stderr)")
            #expect(refused.stderr.contains(" has no URL\nhint: what wrote it may have failed"), "\(refused.stderr)")
        }
        let one = "echo http://a.test/ | \(program) run - --options fromCacheOnly --allow-failures 1 -n 1 -q \(at)"
        #expect(await (try await shell(one, folder)).wait() == .exited(0))
        for command in [
            "blacklist add - <'\(none)'", "blacklist rm - </dev/null", "cache path --missing - <'\(none)'",
            "cache rm - </dev/null",
        ] {
            let refused = try await shell("\(program) \(command) \(at)", folder)
            #expect(await refused.wait() == .exited(65), "\(command): \(refused.stdout) \(refused.stderr)")
            #expect(
                refused.stderr.contains(" has no URL\n") && refused.stderr.contains("--allow-empty"),
                "\(command): \(refused.stderr)")
            let allowed = try await shell("\(program) \(command) \(at) --allow-empty", folder)
            #expect(await allowed.wait() == .exited(0), "\(command): \(allowed.stderr)")
        }
        let left = folder.contents().filter { $0.contains("pipe-") }
        #expect(left == [])
    }

    @Test(
        "A folder without lists is refused by its name, and a FIFO that nobody writes to is waited for, with a line on a terminal"
    )
    func waiting() async throws {
        let b = try await RemoteBatch()
        let at = "--redis '\(b.redis.url)'"
        let folder = try await shell("\(program) submit '\(b.folder.path(""))' \(at)", b.folder)
        #expect(await folder.wait() == .exited(66))
        #expect(folder.stderr.hasPrefix("error: the folder \(b.folder.path("")) has no files"), "\(folder.stderr)")
        let fifo = b.folder.path("list.fifo")
        #expect(mkfifo(fifo, 0o600) == 0)
        let command = "\(program) submit '\(fifo)' --name late \(at)"
        let child = try await ChildProcess(
            "/usr/bin/script", ["-qefc", command, "/dev/null"],
            environment: ["TMPDIR": b.folder.path("")])
        try await poll { child.stdout.contains("waiting for a writer of \(fifo)") }
        #expect(try await b.queue.batches.status(of: "late") == nil)
        let writer = try await shell("printf 'http://192.0.2.1/0.png\\n' >'\(fifo)'", b.folder)
        #expect(await writer.wait() == .exited(0))
        #expect(await child.wait() == .exited(0), "\(child.stdout)")
        #expect(try await b.queue.batches.status(of: "late")?.total == 1)
    }

    private func poll(_ condition: () async throws -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(20)
        while try await !condition() {
            try #require(ContinuousClock.now < end, "it did not come to pass in 20 s")
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
