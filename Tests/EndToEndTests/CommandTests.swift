import Glibc
import Origin
import TestSupport
import Testing

/// The built programs, as a user runs them.
@Suite("The programs", .timeLimit(.minutes(5)))
struct CommandTests: FolderSuite {
    let folder = TemporaryDirectory()
    private func origin(good: Int) throws -> OriginServer {
        let origin = try OriginServer()
        for index in 0..<good {
            origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 16, height: 16)))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
        return origin
    }

    @Test("run fetches, counts, exits 3 for skips, and then everything else works with --cache alone")
    func run() async throws {
        let origin = try origin(good: 30)
        let file = list((0..<33).map { origin.url("/\($0).png") } + ["# a comment", "", "not a url"])
        let cache = folder.path("cache")
        let run = try await coord(["run", file, "--cache", cache, "-n", "2", "--allow-net", "127.0.0.0/8", "--json"])
        #expect(await run.wait() == .exited(3))
        #expect(
            run.stdout.contains(#""total":34,"finished":34,"skipped":4,"didFinish":{"totalCount":30,"skippedCount":4}"#)
        )
        #expect(run.stdout.contains(#""downloaded":30,"#))
        #expect(run.stdout.contains(#""httpError":3,"#))
        #expect(run.stdout.contains(#""invalidURL":1,"#))
        #expect(!run.stdout.contains("\u{1B}") && !run.stderr.contains("\u{1B}"))
        #expect(run.stdout.split(separator: "\n").count == 1)

        let status = try await coord(["status", "--cache", cache])
        #expect(await status.wait() == .exited(0))
        #expect(
            status.stdout.contains("done  100.0%  finished 34 of 34: 30 images, 4 skipped (httpError 3, invalidURL 1)"))
        let failures = try await coord(["failures", "--cache", cache, "--json"])
        #expect(await failures.wait() == .exited(0))
        #expect(failures.stdout.split(separator: "\n").count == 4)
        #expect(
            failures.stdout.contains(
                #""line":31,"url":"\#(origin.url("/30.png"))","outcome":"httpError","reason":null,"http_status":404"#))
        #expect(
            failures.stdout.contains(
                #""line":36,"url":"not a url","outcome":"invalidURL","reason":null,"http_status":null"#))
        let verify = try await coord(["cache", "verify", "--cache", cache, "--json"])
        #expect(await verify.wait() == .exited(0))
        #expect(
            verify.stdout
                == #"{"v":1,"checked":30,"damaged":[],"without_record":0,"foreign":[],"moved_aside":0,"recorded":0}"#
                + "\n")
        let fsck = try await coord(["fsck", "--cache", cache])
        #expect(await fsck.wait() == .exited(0))
        let path = try await coord(["cache", "path", origin.url("/7.png"), "--cache", cache])
        #expect(await path.wait() == .exited(0))
        #expect(readFile(String(path.stdout.dropLast())) == GeneratedImage.png(seed: 7, width: 16, height: 16))

        // Again: no request for what is there or listed.
        let before = origin.requestCount()
        let again = try await coord([
            "run", file, "--cache", cache, "--allow-net", "127.0.0.0/8", "--json", "--allow-failures", "4",
        ])
        #expect(await again.wait() == .exited(0))
        #expect(again.stdout.contains(#""hit":30,"#) && again.stdout.contains(#""blacklisted":3,"#))
        #expect(origin.requestCount() == before)
    }

    @Test("Bad input gets two lines and its exit code, and leaves nothing behind")
    func badInput() async throws {
        let good = list(["http://127.0.0.1:1/a.png"])
        folder.write(Array("PAR1\u{1}\u{2}".utf8), to: "x.parquet")
        folder.write([0x1F, 0x8B, 8, 0], to: "x.gz")
        folder.write(Array("id,url\n1,a.jpg\n".utf8), to: "x.csv")
        // What is no list of lines is laid out as one in the cache.
        let (cache, laidOut) = (folder.path("new"), folder.path("other"))
        let cases: [([String], Int32, String)] = [
            (["run", folder.path("none.txt"), "--cache", cache], 66, "No such file"),
            (["run", folder.path, "--cache", laidOut], 65, "x.gz: unexpected end of file"),
            (["run", folder.path("x.parquet"), "--cache", cache], 65, "arquet"),
            (
                ["run", folder.path("x.gz"), "--cache", laidOut], 65,
                "x.gz: unexpected end of file\nhint: it is damaged"
            ),
            (["run", folder.path("x.csv"), "--cache", laidOut], 65, "x.csv looks like CSV with the columns id, url"),
            (["run", good, "--cache", "/proc/none"], 73, "/proc/none"),
            (["status", "--redis", "redis://127.0.0.1:1"], 69, "Connection refused"),
            (["submit", good, "--redis", "rediss://127.0.0.1"], 78, "TLS"),
            (["status", "--cache", cache], 66, "no run of this user has used it"),
            (["run", good, "--nonsense"], 64, "--nonsense"),
            (["rnu", good], 64, "run"),
        ]
        for (arguments, code, text) in cases {
            let child = try await coord(arguments)
            #expect(await child.wait() == .exited(code), "\(arguments)")
            #expect(child.stderr.contains(text), "\(arguments): \(child.stderr)")
            #expect(child.stdout == "", "\(arguments)")
            if code != 64 { #expect(child.stderr.hasPrefix("error: "), "\(child.stderr)") }
        }
        #expect(access(cache, F_OK) != 0)
    }

    @Test("submit, then workers in a burst: their own counts add up to the batch")
    func workers() async throws {
        let origin = try origin(good: 40)
        let redis = try await RedisServer()
        let submit = try await coord(
            ["submit", "-", "--redis", redis.url],
            input: Array((0..<50).map { origin.url("/\($0).png") + "\n" }.joined().utf8))
        #expect(await submit.wait() == .exited(0))
        let id = String(submit.stdout.dropLast())
        #expect(id.hasPrefix("stdin"))
        #expect(submit.stderr.contains("queued 50 URLs as \(id)"))
        #expect(submit.stderr.contains("prefetch-worker --redis"))
        var workers: [ChildProcess] = []
        for _ in 0..<3 {
            workers.append(
                try await ChildProcess(
                    builtProduct("prefetch-worker"),
                    ["--burst", "--redis", redis.url, "--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8"]))
        }
        var finished = 0
        for worker in workers {
            #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
            let words = worker.stdout.split(separator: " ")
            finished += words.firstIndex(of: "finished").flatMap { Int(words[$0 + 1]) } ?? 0
        }
        #expect(finished == 50)
        let status = try await coord(["status", id, "--redis", redis.url, "--json"])
        #expect(await status.wait() == .exited(0))
        #expect(status.stdout.contains(#""finished":50,"skipped":10"#))
    }

    @Test("SIGTERM ends a run with 75 and the same command continues it; a second one forces 143")
    func signals() async throws {
        let origin = try origin(good: 0)
        origin.setFallback { request in
            var response = OriginResponse(body: GeneratedImage.png(seed: 1, width: 8, height: 8))
            response.delay = 0.05
            return response
        }
        let file = list((0..<1200).map { origin.url("/\($0).png") })
        let arguments = [
            "run", file, "--cache", folder.path("cache"), "-n", "2", "--allow-net", "127.0.0.0/8", "--json",
        ]
        let first = try await coord(arguments)
        await origin.waitForRequests(100)
        first.signal(SIGTERM)
        #expect(await first.wait() == .exited(75), "\(first.stderr)")
        #expect(first.stderr.contains("nothing is lost"))
        let second = try await coord(arguments)
        await origin.waitForRequests(origin.requestCount() + 100)
        second.signal(SIGTERM)
        second.signal(SIGTERM)
        let end = await second.wait()
        #expect(end == .exited(143) || end == .exited(75), "\(end) \(second.stderr)")
        let third = try await coord(arguments)
        #expect(await third.wait() == .exited(0), "\(third.stderr)")
        #expect(third.stderr.contains("continuing urls-"))
        #expect(third.stdout.contains(#""finished":1200,"skipped":0"#))
        let fsck = try await coord(["fsck", "--cache", folder.path("cache")])
        #expect(await fsck.wait() == .exited(0), "\(fsck.stdout)")
    }
}
