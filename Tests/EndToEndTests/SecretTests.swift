import Foundation
import Glibc
import Origin
import Redis
import TestSupport
import Testing

/// What nobody else is to read: on command lines, in files, in what is printed.
@Suite("Secrets and the programs", .timeLimit(.minutes(5)))
struct SecretTests: FolderSuite {
    let folder = TemporaryDirectory()

    /// Every process below one, by its number, with its command line.
    private func commandLines(below pid: Int32) -> [Int32: String] {
        var parents: [Int32: Int32] = [:]
        for child in ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap({ Int32($0) }) {
            let text = (try? String(contentsOfFile: "/proc/\(child)/stat", encoding: .utf8)) ?? ""
            let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
            if fields.count > 1 { parents[child] = Int32(fields[1]) }
        }
        var lines: [Int32: String] = [:]
        for child in parents.keys {
            var ancestor = parents[child]
            while let next = ancestor, next != pid, next > 1 { ancestor = parents[next] }
            guard ancestor == pid else { continue }
            let bytes = (try? Data(contentsOf: URL(fileURLWithPath: "/proc/\(child)/cmdline"))) ?? Data()
            lines[child] = bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
        }
        return lines
    }

    /// Files below a folder that contain a text.
    private func files(below path: String, containing text: String) -> [String] {
        let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        return names.filter { name in
            guard let data = FileManager.default.contents(atPath: "\(path)/\(name)") else { return false }
            return data.firstRange(of: Data(text.utf8)) != nil
        }
    }

    @Test(
        "No secret of a run is on the command line of a worker or in a file, and a worker that is started again has it too"
    )
    func workersOfARun() async throws {
        let origin = try OriginServer()
        let image = GeneratedImage.png(seed: 1, width: 8, height: 8)
        for path in ["/held.png", "/other.png"] {
            origin.route(path, OriginResponse(body: image, fault: .stallBeforeHeader))
        }
        folder.write(Array("Private-Token: SECRET-FILE\n".utf8), to: "headers")
        folder.write(Array("SECRET-BEARER\n".utf8), to: "token")
        let cache = folder.path("cache")
        let secrets = ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
        let run = try await ChildProcess(
            builtProduct("prefetch-coord"),
            [
                "run", list([origin.url("/held.png"), origin.url("/other.png")]), "--cache", cache, "-n", "1",
                "--allow-net",
                "127.0.0.0/8", "--bearer", "@\(folder.path("token"))", "-H", "X-Api-Key: SECRET-KEY", "-H",
                "@\(folder.path("headers"))", "-H", "Cookie: SECRET-COOKIE=1", "--header-rule",
                "127.0.0.1=X-Rule: SECRET-RULE",
            ], environment: Dictionary(uniqueKeysWithValues: secrets.map { ($0, "SECRET") }))
        func expectSent(_ requests: [OriginRequest]) {
            #expect(!requests.isEmpty)
            for request in requests {
                #expect(request.header("Authorization") == "Bearer SECRET-BEARER")
                #expect(request.header("X-Api-Key") == "SECRET-KEY")
                #expect(request.header("Private-Token") == "SECRET-FILE")
                #expect(request.header("Cookie") == "SECRET-COOKIE=1")
                #expect(request.header("X-Rule") == "SECRET-RULE")
            }
        }
        await origin.waitForRequests(1, to: "/held.png")
        expectSent(origin.requests)
        let workers = commandLines(below: run.pid).filter { $0.value.contains("prefetch-worker") }
        #expect(workers.count == 1)
        for line in commandLines(below: run.pid).values { #expect(!line.contains("SECRET"), "\(line)") }
        #expect(files(below: cache, containing: "SECRET") == [])
        for (pid, line) in commandLines(below: run.pid) {
            // One that has ended since has none.
            guard let variables = FileManager.default.contents(atPath: "/proc/\(pid)/environ") else { continue }
            #expect(variables.firstRange(of: Data("SECRET".utf8)) == nil, "\(line)")
            #expect(variables.firstRange(of: Data("PATH=".utf8)) != nil || !line.contains("prefetch-worker"), "\(line)")
        }
        let before = origin.requestCount()
        for pid in workers.keys { kill(pid, SIGKILL) }
        try await until { origin.requestCount() >= before + 2 }
        let again = commandLines(below: run.pid).filter { $0.value.contains("prefetch-worker") }
        #expect(again.count == 1 && Set(again.keys).isDisjoint(with: workers.keys))
        for line in again.values { #expect(!line.contains("SECRET"), "\(line)") }
        expectSent(Array(origin.requests.dropFirst(before)))
        for path in ["/held.png", "/other.png"] { origin.release(path) }
        #expect(await run.wait() == .exited(0), "\(run.stderr)")
        #expect(!run.stderr.contains("SECRET"))
    }

    @Test("Credentials of a proxy reach it from a file, and are not on a command line")
    func proxy() async throws {
        let proxy = try OriginServer()
        proxy.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 2, width: 8, height: 8)) }
        folder.write(Array(proxy.url("").replacing("http://", with: "http://me:SECRET-PROXY@").utf8), to: "proxy")
        let run = try await coord([
            "run", list(["http://images.example/1.png"]), "--cache", folder.path("cache"), "-n", "1", "-q", "--proxy",
            "@\(folder.path("proxy"))",
        ])
        #expect(await run.wait() == .exited(0), "\(run.stderr)")
        #expect(
            proxy.requests.map { $0.header("Proxy-Authorization") }
                == ["Basic \(Data("me:SECRET-PROXY".utf8).base64EncodedString())"])
        #expect(files(below: folder.path("cache"), containing: "SECRET") == [])
    }

    @Test("The Redis of a queue is not reached, whatever network is open; --deny-net closes more, and wins")
    func denied() async throws {
        let port = freePort()
        let redis = try await RedisServer(options: ["--port", "\(port)", "--bind", "127.0.0.1"])
        let (origin, closed) = (try OriginServer(), try OriginServer(address: "127.0.0.3"))
        for server in [origin, closed] {
            server.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 3, width: 8, height: 8)) }
        }
        origin.route("/there.png", .redirect(to: "http://localhost:\(port)/there.png"))
        let urls = [
            origin.url("/1.png"), "http://127.0.0.1:\(port)/2.png", "http://localhost:\(port)/3.png",
            origin.url("/there.png"), closed.url("/5.png"), "http://127.0.0.1:6379/6.png",
        ]
        let place = ["--redis", "redis://127.0.0.1:\(port)"]
        let submit = try await coord(["submit", list(urls), "--name", "b", "--tries", "1"] + place)
        #expect(await submit.wait() == .exited(0), "\(submit.stderr)")
        // As docker/compose.yaml starts its workers: the whole network of the stack is open, its Redis in it.
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"),
            ["--burst", "--quiet", "--cache", folder.path("cache"), "--deny-net", "127.0.0.3"] + place,
            environment: ["PREFETCH_ALLOW_NET": "127.0.0.0/8"])
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        let failures = try await coord(["failures", "b", "--json"] + place)
        #expect(await failures.wait() == .exited(0))
        let lines = failures.stdout.split(separator: "\n")
        #expect(lines.count == 5)
        for line in lines { #expect(line.contains(#""outcome":"refused""#), "\(line)") }
        #expect(lines.filter { $0.contains("port \(port) is the queue's Redis") }.count == 3)
        #expect(lines.filter { $0.contains("127.0.0.3 port \(closed.port) is closed by the operator") }.count == 1)
        #expect(lines.filter { $0.contains("port 6379 of 127.0.0.1 is not a web server's") }.count == 1)
        #expect(closed.connectionCount == 0 && origin.requestCount() == 2)
        #expect(!redis.log.contains("SECURITY"))
    }

    @Test(
        "URL passwords and signed query values are masked in every output and file, and shown where that is asked for")
    func outputs() async throws {
        let origin = try OriginServer()
        let image = GeneratedImage.png(seed: 4, width: 8, height: 8)
        origin.setFallback { $0.path.hasPrefix("/good") ? OriginResponse(body: image) : OriginResponse(status: 404) }
        let base = origin.url("").replacing("http://", with: "http://me:SECRET-1@")
        let urls = [
            "\(base)/good.png?X-Amz-Signature=SECRET-2&w=1", "\(base)/bad.png?%73ig=SECRET-3",
            "\(base)/bad2.png?token=SECRET-4",
        ]
        let (cache, log, file) = (folder.path("cache"), folder.path("transfers"), list(urls))
        folder.write([], to: "transfers")
        chmod(log, 0o644)
        let run = try await coord([
            "run", file, "--cache", cache, "-n", "1", "--allow-net", "127.0.0.0/8", "--tries", "1", "--transfer-log",
            log, "--manifest", folder.path("manifest"), "--progress", "json",
        ])
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        let place = ["--cache", cache]
        let commands: [[String]] = [
            ["failures"], ["failures", "--json"], ["export", "--format", "jsonl"], ["export", "--format", "csv"],
            ["export", "--format", "tsv"], ["export", "--format", "failed"], ["export", "--format", "lock"],
            ["watch", "--json"],
            ["status", "--json"], ["blacklist", "list"], ["blacklist", "list", "--json"],
            ["why", urls[1]], ["why", urls[1], "--json"], ["cache", "ls"], ["cache", "ls", "--json"],
            ["export", "--format", "html", "--output", folder.path("report.html")], ["fsck"], ["dash", "--once"],
            ["cache", "path", "\(base)/none?sig=SECRET-5"],
            ["cache", "path", "--missing", "\(base)/none?sig=SECRET-5"],
            ["export", "--format", "tree", "--out", folder.path("tree")],
            ["export", "--format", "webdataset", "--out", folder.path("shards")],
        ]
        var shown = 0
        for words in commands {
            let command = try await coord(words + place)
            let end = await command.wait()
            // 3: some were skipped; 1, 66: it is not in the cache.
            #expect([0, 1, 3, 66].contains { end == .exited($0) }, "\(words): \(command.stderr)")
            #expect(
                !command.stdout.contains("SECRET") && !command.stderr.contains("SECRET"),
                "\(words)\n\(command.stdout)\(command.stderr)")
            if command.stdout.contains("***") { shown += 1 }
        }
        #expect(shown >= 10)
        for name in ["transfers", "manifest", "report.html", "tree", "shards"] {
            let path = folder.path(name)
            #expect(FileManager.default.fileExists(atPath: path), "\(name)")
            #expect(files(below: path, containing: "SECRET") == [])
            let own = FileManager.default.contents(atPath: path) ?? Data()
            #expect(own.firstRange(of: Data("SECRET".utf8)) == nil, "\(name)")
            let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
            #expect(!names.contains { $0.contains("SECRET") }, "\(names)")
        }
        var status = stat()
        #expect(stat(log, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(!run.stdout.contains("SECRET") && !run.stderr.contains("SECRET"))
        // Plain where that is asked for: lists that other commands read.
        let lock = try await coord(["export", "--format", "lock", "--show-secrets"] + place)
        #expect(await lock.wait() == .exited(0))
        #expect(lock.stdout.contains(urls[0] + "\t") && !lock.stdout.contains("***"))
        let failed = try await coord(["failures", "--json", "--show-secrets"] + place)
        #expect(await failed.wait() == .exited(0))
        #expect(failed.stdout.contains("%73ig=SECRET-3"))
        // Round trips within the system need no option: a retry.
        let requests = origin.requestCount()
        let retry = try await coord(
            ["retry"] + place + ["-n", "1", "-q", "--allow-net", "127.0.0.0/8", "--tries", "1"])
        #expect(await retry.wait() == .exited(3), "\(retry.stderr)")
        let sent = origin.requests.dropFirst(requests)
        #expect(sent.contains { $0.path == "/bad2.png?token=SECRET-4" })
        for request in sent { #expect(request.header("Authorization") == "Basic bWU6U0VDUkVULTE=") }
    }
}
