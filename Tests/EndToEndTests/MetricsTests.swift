import Foundation
import Prefetch
import Redis
import TestSupport
import Testing
import WebImage

@Suite("Metrics and health", .timeLimit(.minutes(5)))
struct MetricsTests {
    /// What `promtool` says of a text; nothing where it finds nothing.
    private func promtool(_ text: String, _ b: RemoteBatch) async throws -> String {
        b.folder.write(Array(text.utf8), to: "metrics.txt")
        let check = try await b.shell("promtool check metrics < '\(b.folder.path("metrics.txt"))' 2>&1")
        let status = await check.wait()
        return status == .exited(0) ? check.stdout : "\(status) \(check.stdout)"
    }

    /// One request over a socket of the shell, as it is written; the whole answer.
    private func ask(_ b: RemoteBatch, _ port: Int, _ request: String) async throws -> String {
        let client = try await b.shell(
            "exec 3<>/dev/tcp/127.0.0.1/\(port); printf \(quoted(request)) >&3; timeout 20 cat <&3")
        await client.wait()
        return client.stdout
    }

    private func quoted(_ text: String) -> String {
        "'" + text.replacing("\r", with: "\\r").replacing("\n", with: "\\n") + "'"
    }

    private func get(_ b: RemoteBatch, _ port: Int, _ path: String, accept: String = "*/*") async throws -> String {
        try await ask(b, port, "GET \(path) HTTP/1.1\r\nHost: h\r\nAccept: \(accept)\r\n\r\n")
    }

    /// A server on a free port, and the port.
    private func serve(_ b: RemoteBatch) async throws -> (ChildProcess, Int) {
        let server = try await b.coord(["metrics", "--listen", "0"])
        try await until { server.stderr.contains("/metrics") }
        let match = try #require(server.stderr.firstMatch(of: /127\.0\.0\.1:([0-9]+)\/metrics/))
        return (server, try #require(Int(match.1)))
    }

    /// A batch with an end of every kind of worker behind it.
    private func batch() async throws -> RemoteBatch {
        let b = try await RemoteBatch()
        let urls = (0..<10).map { "http://192.0.2.1/\($0).png" }
        try await b.submit(urls, as: "mine")
        for index in 0..<4 { try await b.settle("mine", index, urls[index], index == 0 ? .httpError : .downloaded) }
        for (name, facts) in [("a", []), ("b", [("trouble", "full\"\\\n")]), ("c", [("paused", "1")])] {
            let about = [("in_flight", "7"), ("retrying", "2")] + facts
            #expect(try await b.queue.workers.join(worker: name, lease: 600_000, about: about))
        }
        // Three requests of 90 to 108 ms, and one above all bounds.
        let fields: [RedisArgument] = ["t27", "3", "t69", "1", "d6", "200300000", "a0", "5", "a1", "4"]
        _ = try await b.queue.connection.command(["HSET", RedisArgument(b.queue.keys.batch("mine"))] + fields)
        return b
    }

    @Test(
        "Python's own parsers read both forms, with the same samples, and a form that is spoilt they refuse", .thorough,
        .needsPyPI
    )
    func python() async throws {
        let b = try await batch()
        let disk = try DiskCache(directory: b.folder.path("cache"))
        _ = try disk.account.usage()
        for form in ["prometheus", "openmetrics"] {
            let metrics = try await b.done(["metrics", "--format", form, "--cache", b.folder.path("cache")])
            b.folder.write(Array(metrics.stdout.utf8), to: form)
        }
        let said = try await PythonTools.run(
            """
            import sys
            from prometheus_client.parser import text_string_to_metric_families as plain
            from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
            one, two = (open(path).read() for path in sys.argv[1:])
            def samples(families):
                return {(s.name, tuple(sorted(s.labels.items()))) for f in families for s in f.samples}
            assert samples(plain(one)) == samples(strict(two)), samples(plain(one)) ^ samples(strict(two))
            for spoilt in (two.replace("# EOF", ""), one, two.replace("prefetch_urls_total{", "prefetch_urls{")):
                try:
                    list(strict(spoilt))
                    print("taken:", spoilt[:100])
                except ValueError:
                    pass
            print(len(list(strict(two))) > 20, len(samples(strict(two))) > 40)
            """, [b.folder.path("prometheus"), b.folder.path("openmetrics")])
        #expect(said == "True True\n")
    }

    @Test("A file is replaced in one step, and stays as it was where Redis is away")
    func textfile() async throws {
        let b = try await batch()
        let file = b.folder.path("prefetch.prom")
        try await b.done(["metrics", "--textfile", file])
        let text = String(decoding: try #require(b.folder.read("prefetch.prom")), as: UTF8.self)
        #expect(text.contains("prefetch_redis_up{queue=\"default\"} 1\n") && text.hasSuffix("\n"))
        await b.redis.kill9()
        #expect(await (try await b.ended(["metrics", "--textfile", file])).wait() == .exited(69))
        #expect(String(decoding: b.folder.read("prefetch.prom") ?? [], as: UTF8.self) == text)
        for arguments in [
            ["--textfile", file, "--listen", "0"], ["--listen", "host:1"], ["--listen", "70000"],
            ["--listen", "0", "--format", "openmetrics"], ["--textfile", file, "--format", "openmetrics"],
        ] {
            #expect(await (try await b.ended(["metrics"] + arguments)).wait() == .exited(64), "\(arguments)")
        }
    }

    @Test("Scrapers get the format they ask for, and what is no request of theirs is refused")
    func serving() async throws {
        let b = try await batch()
        let (server, port) = try await serve(b)
        let plain = try await get(b, port, "/metrics")
        #expect(plain.hasPrefix("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"))
        let body = String(plain.split(separator: "\r\n\r\n", maxSplits: 1).last ?? "")
        #expect(plain.contains("Content-Length: \(body.utf8.count)\r\n"))
        // As Prometheus 2.42 asks.
        let open = try await get(
            b, port, "/metrics?x=1",
            accept:
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,*/*;q=0.1"
        )
        #expect(open.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"))
        #expect(open.hasSuffix("# EOF\n"))
        #expect(try await ask(b, port, "HEAD /healthz HTTP/1.0\r\n\r\n").hasSuffix("\r\n\r\n"))
        #expect(try await get(b, port, "/healthz").hasSuffix("\r\n\r\nok\n"))
        #expect(try await get(b, port, "/readyz").hasPrefix("HTTP/1.1 200"))
        #expect(try await get(b, port, "/").hasPrefix("HTTP/1.1 404"))
        #expect(try await ask(b, port, "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\n").hasPrefix("HTTP/1.1 405"))
        #expect(try await ask(b, port, "hello\r\n\r\n").hasPrefix("HTTP/1.1 400"))
        let long = String(repeating: "a", count: 8_192)
        #expect(try await ask(b, port, "GET /metrics HTTP/1.1\r\nX: \(long)").hasPrefix("HTTP/1.1 431"))
        server.signal(SIGTERM)
        #expect(await server.wait() == .exited(0), "\(server.stderr)")
        let taken = try await serve(b)
        let second = try await b.done(["metrics", "--listen", "127.0.0.1:\(taken.1)"], 78)
        #expect(second.stderr.contains("cannot listen on 127.0.0.1:\(taken.1)"))
        taken.0.signal(SIGINT)
        #expect(await taken.0.wait() == .exited(0))
    }

    @Test("Connections that say nothing hold up nobody, and are cut off")
    func slow() async throws {
        let b = try await batch()
        let (server, port) = try await serve(b)
        let idle = try await b.shell(
            "for n in 4 5 6 7; do eval \"exec $n<>/dev/tcp/127.0.0.1/\(port)\"; done; printf GET >&4; echo open; "
                + "timeout 20 cat <&4; timeout 20 cat <&5; echo closed")
        try await until { idle.stdout.contains("open") }
        for _ in 0..<3 { #expect(try await get(b, port, "/healthz").hasSuffix("ok\n")) }
        #expect(!idle.stdout.contains("closed"))
        await idle.wait()
        #expect(idle.stdout.hasPrefix("open\nHTTP/1.1 408 Request Timeout\r\n") && idle.stdout.hasSuffix("closed\n"))
        server.signal(SIGTERM)
        await server.wait()
    }

    @Test("A Redis that goes, hangs and comes back is told, and ends nothing")
    func redisAway() async throws {
        let b = try await batch()
        let (server, port) = try await serve(b)
        await b.redis.kill9()
        let away = try await get(b, port, "/metrics")
        #expect(away.contains("\nprefetch_redis_up{queue=\"default\"} 0\n") && !away.contains("prefetch_workers"))
        let notReady = try await get(b, port, "/readyz")
        #expect(notReady.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n") && notReady.contains("Redis"), "\(notReady)")
        #expect(try await get(b, port, "/healthz").hasSuffix("ok\n"))
        try await b.redis.start()
        try await until { try await get(b, port, "/readyz").hasPrefix("HTTP/1.1 200") }
        #expect(try await get(b, port, "/metrics").contains("\nprefetch_redis_up{queue=\"default\"} 1\n"))
        b.redis.freeze()
        #expect(try await get(b, port, "/metrics").contains("\nprefetch_redis_up{queue=\"default\"} 0\n"))
        b.redis.thaw()
        try await until { try await get(b, port, "/metrics").contains("\nprefetch_redis_up{queue=\"default\"} 1\n") }
        server.signal(SIGTERM)
        #expect(await server.wait() == .exited(0))
    }

    @Test("health: a worker that lives, one that stands still, none, and no Redis")
    func health() async throws {
        let b = try await RemoteBatch()
        func health(_ options: String...) async throws -> (ChildProcess.Status, String) {
            let child = try await ChildProcess(
                builtProduct("prefetch-worker"), ["health", "--redis", b.redis.url] + options)
            return (await child.wait(), child.stdout + child.stderr)
        }
        let none = try await health()
        #expect(none.0 == .exited(1) && none.1.contains("is registered"), "\(none.1)")
        try await b.submit(["http://192.0.2.1/a.png"], as: "s")
        _ = try await b.queue.control.pause(.batch("s"))
        let worker = try await b.workers(1, ["--lease", "2s"])[0]
        try await until { try await health().0 == .exited(0) }
        let name = try #require(try await b.queue.workers.names().first)
        let alive = try await health("--worker", name, "--ready")
        #expect(alive.0 == .exited(0) && alive.1.contains("\(name)  alive"), "\(alive.1)")
        _ = try await b.queue.control.pause(.worker(name))
        let paused = try await health("--ready")
        #expect(paused.0 == .exited(1) && paused.1.contains("paused"))
        #expect(try await health("--quiet") == (.exited(0), ""))
        worker.signal(SIGSTOP)
        try await until { try await health().0 == .exited(1) }
        worker.signal(SIGKILL)
        await worker.wait()
        await b.redis.kill9()
        // They wait for it, and a new start would not bring it back; but they take no jobs.
        let away = try await health()
        #expect(away.0 == .exited(0) && away.1.hasPrefix("waiting: "), "\(away.1)")
        #expect(try await health("--ready").0 == .exited(69))
    }

    @Test(
        "promtool finds nothing wrong with what is printed, with what is in a file and with what is served", .thorough)
    func promtoolReads() async throws {
        let b = try await batch()
        let metrics = try await b.done(["metrics"])
        #expect(try await promtool(metrics.stdout, b) == "")
        try await b.done(["metrics", "--textfile", b.folder.path("prefetch.prom")])
        let text = String(decoding: try #require(b.folder.read("prefetch.prom")), as: UTF8.self)
        #expect(try await promtool(text, b) == "")
        let (server, port) = try await serve(b)
        let body = try await get(b, port, "/metrics").split(separator: "\r\n\r\n", maxSplits: 1).last
        #expect(try await promtool(String(body ?? ""), b) == "")
        server.signal(SIGTERM)
        await server.wait()
    }

    private static let docs = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs")
        .standardized

    /// The queries of the dashboard, in its quotes.
    private func expressions() throws -> [String] {
        let dashboard = try String(contentsOf: Self.docs.appending(path: "grafana.json"), encoding: .utf8)
        return dashboard.matches(of: /"expr": ("(?:[^"\\]|\\.)*")/).map { String($0.1) }
    }

    @Test("promtool reads the alerts and the dashboard's queries, and each alert fires where it should", .thorough)
    func rules() async throws {
        let b = try await RemoteBatch()
        let expressions = try expressions()
        let rules = expressions.enumerated().map {
            "  - { record: r\($0), expr: \($1.replacing("$__rate_interval", with: "5m")) }\n"
        }
        b.folder.write(Array(("groups:\n- name: g\n  rules:\n" + rules.joined()).utf8), to: "dashboard.yaml")
        for (command, said) in [
            ("check rules alerts.yaml", "SUCCESS: 12 rules found"), ("test rules alerts_test.yaml", "SUCCESS"),
            ("check rules '\(b.folder.path("dashboard.yaml"))'", "SUCCESS: \(expressions.count) rules found"),
        ] {
            let child = try await b.shell("cd '\(Self.docs.path())' && promtool \(command)")
            #expect(await child.wait() == .exited(0), "\(command): \(child.stdout) \(child.stderr)")
            #expect(child.stdout.contains(said), "\(child.stdout)")
        }
    }
}
