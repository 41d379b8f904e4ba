import Origin
import Testing

@testable import WebImage

@Suite("Hosts that count as one", .timeLimit(.minutes(1)))
struct HostGroupTests {
    @Test("Addresses count to the first network they are in, names to their domain")
    func names() throws {
        var policy = HostPolicy()
        policy.groups = ["example.org", "198.51.100.0/24", "198.51.0.0/16", "2001:db8::/32"]
        func host(_ url: String) throws -> String { policy.host(of: try RequestURL(url)) }
        #expect(try host("http://198.51.100.7:8080/") == "198.51.100.0/24")
        #expect(try host("http://198.51.101.7/") == "198.51.0.0/16")
        #expect(try host("http://[2001:db8:1::5]/") == "2001:db8::/32")
        #expect(try host("http://203.0.113.1/") == "203.0.113.1")
        #expect(try host("http://a.example.org/") == "example.org")
    }

    @Test("A name whose address is in a network counts to it, with what already waits, as soon as it was connected to")
    func learns() async throws {
        let origin = try OriginServer()
        let downloader = try makeDownloader {
            $0.hosts.groups = ["127.0.0.0/8"]
            $0.maxConnectionsPerHost = 2
            $0.maxConcurrentDownloads = 16
            $0.resolve = ["a.test:\(origin.port):127.0.0.1", "b.test:\(origin.port):127.0.0.1"]
            $0.parkAfter = 40
        }
        // Each name is known after its first answer.
        origin.setFallback { _ in OriginResponse(body: [1]) }
        for name in ["a", "b"] { _ = try await downloader.download("http://\(name).test:\(origin.port)/0") }
        origin.setFallback { _ in OriginResponse(body: [1], fault: .stallBeforeHeader) }
        let waiting = (0..<10).map { index in
            let url = "http://\(index % 2 == 0 ? "a" : "b").test:\(origin.port)/\(index + 1)"
            return Task { try await downloader.download(url) }
        }
        await origin.waitForRequests(4)
        try await until { await downloader.activity.waitingForHost == 8 }
        // Two in all, and not two of each name.
        #expect(await downloader.activeDownloadCount == 2)
        #expect(origin.requestCount() == 4)
        for task in waiting { task.cancel() }
        for task in waiting { await #expect(throws: WebImageError.self) { try await task.value } }
    }

    @Test("What waits under a name is served under its network, in its order")
    func moves() {
        var queue = DownloadQueue<Int>(order: .fifo)
        for number in 0..<3 { queue.enqueue(number, host: "a", priority: 1, limit: 1) }
        queue.enqueue(9, host: "a", priority: 0, limit: 1)
        #expect(queue.next() == 9)
        #expect(queue.next() == nil)
        for (number, priority) in queue.takeWaiting(host: "a") {
            queue.enqueue(number, host: "net", priority: priority, limit: 2)
        }
        #expect(queue.waitingCount(host: "a") == 0 && queue.runningCount(host: "a") == 1)
        #expect(queue.next() == 0 && queue.next() == 1)
        #expect(queue.next() == nil)
        queue.release(host: "net")
        #expect(queue.next() == 2)
        queue.release(host: "a")
        #expect(queue.runningCount(host: "a") == 0)
    }

    @Test("A share holds back hosts with a limit, and lets what waits go when it grows")
    func share() {
        var queue = DownloadQueue<Int>(order: .fifo)
        queue.setShare(1)
        for number in 0..<4 { queue.enqueue(number, host: "a", priority: 1, limit: 3) }
        for number in 10..<13 { queue.enqueue(number, host: "open", priority: 1, limit: .max) }
        #expect(queue.next() == 0 && queue.next() == 10 && queue.next() == 11 && queue.next() == 12)
        #expect(queue.next() == nil)
        queue.setShare(2)
        #expect(queue.next() == 1)
        #expect(queue.next() == nil)
        queue.setShare(9)
        #expect(queue.next() == 2)
        // Its own limit is the lower one now.
        #expect(queue.next() == nil)
        queue.setShare(1)
        queue.release(host: "a")
        #expect(queue.next() == nil)
        queue.release(host: "a")
        queue.release(host: "a")
        #expect(queue.next() == 3)
    }
}
