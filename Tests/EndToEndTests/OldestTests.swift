import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing

@Suite("What the oldest open URLs wait for", .timeLimit(.minutes(5)))
struct OldestTests {
    @Test("why --oldest names a silent transfer, a pause, a full host, and then what nobody has")
    func status() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 1, width: 8, height: 8)) }
        origin.route("/hangs.png", OriginResponse(body: [1], fault: .stallBeforeHeader))
        origin.route("/busy.png", OriginResponse.busy(retryAfter: 50))
        // Either may be the one that gets the slot of their host.
        origin.route("/first.png", OriginResponse(body: [1], fault: .stallBeforeHeader))
        origin.route("/second.png", OriginResponse(body: [1], fault: .stallBeforeHeader))
        let port = origin.url("").split(separator: ":").last.map { $0.filter(\.isNumber) } ?? ""
        let named = "http://one.test:\(port)"
        let urls = [
            origin.url("/a.png"), "http://two.test:\(port)/hangs.png", "http://three.test:\(port)/busy.png",
            "\(named)/first.png", "\(named)/second.png",
        ]
        try await b.submit(urls, as: "held", ["--max-per-host", "1", "--timeout", "100s"])
        let before = try await oldest("held", b)
        #expect(before.text.contains("line 1  \(urls[0])  waiting in Redis"))
        #expect(
            before.json.contains(
                #""index":0,"line":1,"url":"\#(urls[0])","host":"127.0.0.1","tries":0,"state":"queued""#))
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"),
            [
                "--redis", b.redis.url, "--cache", b.folder.path("cache"), "--allow-net", "127.0.0.0/8",
                "--connect-to", "one.test:\(port):127.0.0.1:\(port)", "--connect-to",
                "two.test:\(port):127.0.0.1:\(port)", "--connect-to", "three.test:\(port):127.0.0.1:\(port)",
                "--lease", "3s",
            ])
        var text = ""
        var json = ""
        var waiting = 4
        // All four states at once, and the finished one reported: a transfer is stalled after a second without a byte.
        try await until {
            (text, json) = try await oldest("held", b)
            waiting = text.contains("line 5  \(urls[4])  waiting for ") ? 4 : 3
            return !text.contains(urls[0]) && text.contains("line 2  \(urls[1])  stalled: no byte for ")
                && text.contains("line 3  \(urls[2])  next try at ") && text.contains("after HTTP 503 (Retry-After)")
                && text.contains("line \(8 - waiting)  \(urls[7 - waiting])  stalled: no byte for ")
                && text.contains("line \(waiting + 1)  \(urls[waiting])  waiting for ")
                && text.contains("for a slot of one.test (--max-per-host)")
                // Read by a command of its own.
                && json.contains(#""state":"retrying""#) && json.contains(#""state":"waitingForHost""#)
        }
        let name = try #require(try await b.queue.workers.names().first)
        #expect(text.contains("  (\(name))"))
        let busy = #""index":2,"line":3,"url":"\#(urls[2])","host":"three.test","tries":1,"state":"retrying","#
        #expect(json.contains(busy + #""detail":"HTTP 503 (Retry-After)","since":"2"#), "\(json)")
        #expect(
            json.contains(
                #""index":\#(waiting),"line":\#(waiting + 1),"url":"\#(urls[waiting])","host":"one.test","tries":1,"state":"waitingForHost""#
            ))
        #expect(json.contains(#""worker":"\#(name)""#))
        // A worker that stops speaking is named as that.
        worker.signal(SIGSTOP)
        try await until { try await oldest("held", b).text.contains("its worker has been silent for ") }
        worker.signal(SIGKILL)
        _ = await worker.wait()
        let cancel = try await b.ended(["cancel", "held", "--yes"])
        _ = await cancel.wait()
        #expect(try await oldest("held", b).text == "no URL of held is open\n")
    }

    @Test("A URL whose key another process fetches says so")
    func locked() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        origin.route("/same.png", OriginResponse(body: [1], fault: .stallBeforeHeader))
        let url = origin.url("/same.png")
        // Two queues, so that each worker can have only its own batch; one cache.
        var workers: [ChildProcess] = []
        for name in ["one", "two"] {
            try await b.submit([url], as: name, ["--queue", name])
            workers.append(
                try await ChildProcess(
                    builtProduct("prefetch-worker"),
                    [
                        "--redis", b.redis.url, "--cache", b.folder.path("cache"), "--allow-net", "127.0.0.0/8",
                        "--queue",
                        name,
                    ]))
            await origin.waitForRequests(1)
        }
        try await until {
            try await oldest("two", b, ["--queue", "two"]).text
                .contains("for another process that fetches the same key")
        }
        try await until { try await oldest("one", b, ["--queue", "one"]).text.contains("stalled: no byte") }
        #expect(origin.requestCount() == 1)
        for worker in workers {
            worker.signal(SIGKILL)
            _ = await worker.wait()
        }
    }

    private func oldest(
        _ batch: String, _ b: RemoteBatch, _ options: [String] = []
    ) async throws -> (text: String, json: String) {
        let text = try await b.ended(["why", "--oldest", batch] + options)
        let json = try await b.ended(["why", "--oldest", batch, "--json"] + options)
        #expect(await text.wait() == .exited(0), "\(text.stderr)")
        #expect(await json.wait() == .exited(0), "\(json.stderr)")
        return (text.stdout, json.stdout)
    }
}
