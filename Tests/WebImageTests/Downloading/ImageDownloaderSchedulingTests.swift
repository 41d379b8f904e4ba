import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("ImageDownloader's scheduling", .timeLimit(.minutes(5)))
struct ImageDownloaderSchedulingTests {
    @Test("200 staggered downloads of one URL all end, with few transfers")
    func coalesces() async throws {
        let server = try OriginServer()
        let body = pseudoImage(20_000)
        server.route("/a", OriginResponse(body: body, delay: 0.01))
        let downloader = try makeDownloader()
        let count = try await withThrowingTaskGroup(of: Int.self) { group in
            for index in 0..<200 {
                group.addTask {
                    for _ in 0..<index { await Task.yield() }
                    return try await downloader.download(server.url("/a")).body.count
                }
            }
            return try await group.reduce(into: 0) { $0 += $1 == 20_000 ? 1 : 0 }
        }
        #expect(count == 200)
        #expect(server.requestCount() < 100)
        #expect(await downloader.currentDownloadCount == 0)
    }

    @Test("Other options and headers are another transfer")
    func keys() async throws {
        let server = try OriginServer()
        server.route("/a", OriginResponse(body: [1], fault: .stallBeforeHeader))
        let downloader = try makeDownloader()
        async let first = downloader.download(server.url("/a"))
        async let same = downloader.download(server.url("/a"), options: .highPriority)
        async let other = downloader.download(server.url("/a"), options: .allowInvalidSSLCertificates)
        async let header = downloader.download(server.url("/a"), headers: [HTTPHeader("A", "b")])
        await server.waitForRequests(3)
        #expect(await downloader.currentDownloadCount == 3)
        server.release("/a")
        _ = try await (first, same, other, header)
        #expect(server.requestCount() == 3)
    }

    @Test("Cancelling ends one caller; the transfer ends with its last one")
    func cancels() async throws {
        let server = try OriginServer()
        server.route("/a", OriginResponse(body: [1], fault: .stallBeforeHeader))
        server.route("/b", OriginResponse(body: [2], fault: .stallBeforeHeader))
        let downloader = try makeDownloader { $0.downloadTimeout = 30 }
        let first = Task { try await downloader.download(server.url("/a")) }
        let second = Task { try await downloader.download(server.url("/a")) }
        let third = Task { try await downloader.download(server.url("/b")) }
        await server.waitForRequests(2)
        first.cancel()
        third.cancel()
        #expect(await failure(of: first) == .cancelled)
        #expect(await failure(of: third) == .cancelled)
        try await until { server.openConnectionCount <= 1 }
        #expect(await downloader.currentDownloadCount == 1)
        server.release("/a")
        #expect(try await second.value.body.count == 1)
        #expect(server.requestCount("/a") == 1)
        // Asked for again, it is a new transfer.
        server.release("/b")
        #expect(try await downloader.download(server.url("/b")).body.bytes == [2])
    }

    @Test("A task that is cancelled already makes no request")
    func cancelledBefore() async throws {
        let server = try OriginServer()
        let downloader = try makeDownloader()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await downloader.download(server.url("/"))
        }
        task.cancel()
        #expect(await failure(of: task) == .cancelled)
        #expect(server.connectionCount == 0)
    }

    @Test("Cancelling in the backlog and between tries gives everything back")
    func cancelsWaiting() async throws {
        let server = try OriginServer()
        server.route("/slow", OriginResponse(body: [1], fault: .stallBeforeHeader))
        server.route("/busy", .busy(retryAfter: 60))
        server.route("/b", OriginResponse(body: [2]))
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 1 }
        let busy = Task { try await downloader.download(server.url("/busy")) }
        await server.waitForRequests(1, to: "/busy")
        let slow = Task { try await downloader.download(server.url("/slow")) }
        await server.waitForRequests(1, to: "/slow")
        let waiting = Task { try await downloader.download(server.url("/waiting")) }
        try await until { await downloader.currentDownloadCount >= 3 }
        waiting.cancel()
        busy.cancel()
        #expect(await failure(of: waiting) == .cancelled)
        #expect(await failure(of: busy) == .cancelled)
        server.release("/slow")
        _ = try await slow.value
        _ = try await downloader.download(server.url("/b"))
        #expect(server.requestCount("/waiting") == 0)
        #expect(await downloader.currentDownloadCount == 0)
    }

    @Test("cancelAllDownloads and invalidate end everything")
    func cancelsAll() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(fault: .stallBeforeHeader) }
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 2 }
        for isLast in [false, true] {
            let tasks = (0..<10).map { index in Task { try await downloader.download(server.url("/\(isLast)\(index)")) }
            }
            try await until { await downloader.currentDownloadCount >= 10 }
            if isLast { await downloader.invalidateSessionAndCancel() } else { await downloader.cancelAllDownloads() }
            for task in tasks { #expect(await failure(of: task) == .cancelled) }
            #expect(await downloader.currentDownloadCount == 0)
            #expect(await downloader.activeDownloadCount == 0)
        }
        try await until { server.openConnectionCount <= 0 }
        #expect(await downloader.failure(server.url("/after"))?.code == .cancelled)
    }

    @Test("One slot serves in the order of arrival, or the other way round", arguments: DownloadExecutionOrder.allCases)
    func order(order: DownloadExecutionOrder) async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 1
            $0.executionOrder = order
        }
        await downloader.setSuspended(true)
        var tasks: [Task<DownloadedImage, any Error>] = []
        for index in 0..<14 {
            let options: DownloadOptions = index == 5 ? .highPriority : index == 3 ? .lowPriority : []
            tasks.append(Task { try await downloader.download(server.url("/\(index)"), options: options) })
            try await until { await downloader.currentDownloadCount > index }
        }
        #expect(server.requestCount() == 0)
        await downloader.setSuspended(false)
        for task in tasks { _ = try await task.value }
        let normal = (0..<14).filter { $0 != 5 && $0 != 3 }
        let expected = [5] + (order == .fifo ? normal : normal.reversed()) + [3]
        #expect(server.requests.map(\.path) == expected.map { "/\($0)" })
        #expect(server.maxConcurrentRequestsSeen == 1)
    }

    @Test("No more than the slots at once, and the number changes while it runs")
    func concurrency() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1], fault: .stallBeforeHeader) }
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 3 }
        let tasks = (0..<30).map { index in Task { try await downloader.download(server.url("/\(index)")) } }
        await server.waitForRequests(3)
        try await until { await downloader.currentDownloadCount == 30 }
        #expect(await downloader.activeDownloadCount == 3)
        await downloader.setMaxConcurrentDownloads(8)
        await server.waitForRequests(8)
        #expect(await downloader.activeDownloadCount == 8)
        for index in 0..<30 { server.release("/\(index)") }
        for task in tasks { _ = try await task.value }
        #expect(server.requestCount() == 30)
        #expect(server.maxConcurrentRequestsSeen == 8)
        #expect(server.connectionCount == 8)
    }

    @Test("A host has its own limit, and another host its own slots")
    func perHost() async throws {
        let server = try OriginServer()
        let other = try OriginServer(address: "127.0.0.2")
        for origin in [server, other] {
            origin.setFallback { _ in OriginResponse(body: [1], fault: .stallBeforeHeader) }
        }
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 20
            $0.maxConnectionsPerHost = 2
            // Open by being named, so that the limit of a host applies to an address as well.
            $0.addressPolicy = AddressPolicy()
            $0.connectTo = ["one.example:80:127.0.0.1:\(server.port)", "two.example:80:127.0.0.2:\(other.port)"]
        }
        let tasks = (0..<40).map { index in
            Task { try await downloader.download("http://\(index < 20 ? "one" : "TWO").example/\(index)") }
        }
        await server.waitForRequests(2)
        await other.waitForRequests(2)
        try await until { await downloader.currentDownloadCount == 40 }
        #expect(await downloader.activeDownloadCount == 4)
        for index in 0..<40 {
            server.release("/\(index)")
            other.release("/\(index)")
        }
        for task in tasks { _ = try await task.value }
        #expect(server.maxConcurrentRequestsSeen == 2)
        #expect(other.maxConcurrentRequestsSeen == 2)
    }

    @Test(
        "A host that is opened by its address has the limit of a name, unless that is only a default",
        arguments: [true, false])
    func openedHosts(isLimited: Bool) async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1], fault: .stallBeforeHeader) }
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 6
            $0.maxConnectionsPerHost = 2
            $0.limitsOpenedAddresses = isLimited
        }
        let tasks = (0..<6).map { index in Task { try await downloader.download(server.url("/\(index)")) } }
        await server.waitForRequests(isLimited ? 2 : 6)
        for index in 0..<6 { server.release("/\(index)") }
        for task in tasks { _ = try await task.value }
        #expect(server.maxConcurrentRequestsSeen == (isLimited ? 2 : 6))
    }

    @Test("What stalls frees its slot, up to the number that may, and ends well when it continues")
    func frees() async throws {
        let server = try OriginServer()
        for index in 0..<4 { server.route("/stall\(index)", OriginResponse(body: [1, 2], fault: .stall(after: 1))) }
        server.route("/good", OriginResponse(body: [3]))
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 2
            $0.maxStalledDownloads = 3
            $0.stalledAfter = 0.05
            $0.downloadTimeout = 20
        }
        let stalls = (0..<4).map { index in Task { try await downloader.download(server.url("/stall\(index)")) } }
        await server.waitForRequests(1, to: "/stall3")
        // Three are stalled, the fourth keeps one of two slots.
        #expect(try await downloader.download(server.url("/good")).body.bytes == [3])
        #expect(await downloader.currentDownloadCount == 4)
        for index in 0..<4 { server.release("/stall\(index)") }
        for task in stalls { #expect(try await task.value.body.bytes == [1, 2]) }
        #expect(await downloader.activeDownloadCount == 0)
    }

    @Test("Before its first byte a transfer is stalled once others would have had theirs several times")
    func usualWait() async throws {
        let server = try OriginServer()
        server.route("/stall", OriginResponse(body: [1], fault: .stallBeforeHeader))
        server.setFallback { _ in OriginResponse(body: [2]) }
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 1
            $0.maxStalledDownloads = 1
            // Stalled only then, it would have ended before, and its slot with it.
            $0.stalledAfter = 16
            $0.downloadTimeout = 10
            $0.maxTries = 1
        }
        #expect(try await downloader.download(server.url("/first")).body.bytes == [2])
        let stalled = Task { try await downloader.download(server.url("/stall")) }
        await server.waitForRequests(1, to: "/stall")
        #expect(try await downloader.download(server.url("/second")).body.bytes == [2])
        #expect(await downloader.activity.stalled == 1)
        server.release("/stall")
        #expect(try await stalled.value.body.bytes == [1])
    }

    @Test("A number of transfers is a maximum: those without a connection or an answer count")
    func maximum() async throws {
        let (server, full) = (try OriginServer(), try FullPort())
        server.setFallback { request in
            request.path.hasPrefix("/good")
                ? OriginResponse(body: [1]) : OriginResponse(body: [1], fault: .stallBeforeHeader)
        }
        func downloader(frees: Int) throws -> ImageDownloader {
            try makeDownloader {
                $0.maxConcurrentDownloads = 3
                $0.maxStalledDownloads = frees
                $0.stalledAfter = 0.05
                $0.connectTimeout = 4
                $0.maxTries = 1
            }
        }
        func begin(_ name: String, on downloader: ImageDownloader) async throws -> [Task<WebImageError?, Never>] {
            let urls = ["http://127.0.0.1:\(full.port)/\(name)", server.url("/1\(name)"), server.url("/2\(name)")]
            let tasks = urls.map { url in Task { await downloader.failure(url, options: .uninspected) } }
            try await until { server.requestCount("/2\(name)") == 1 && server.requestCount("/1\(name)") == 1 }
            try await until { await downloader.activity.running + downloader.activity.stalled == 3 }
            return tasks
        }
        let strict = try downloader(frees: 0)
        let tasks = try await begin("a", on: strict)
        let good = Task { await strict.failure(server.url("/good"), options: .uninspected) }
        // In the same time one that frees the slots of stalled transfers fetches another URL.
        let freeing = try downloader(frees: 8)
        let others = try await begin("b", on: freeing)
        #expect(await freeing.failure(server.url("/good/freeing"), options: .uninspected) == nil)
        #expect(await strict.activity.running == 3)
        #expect(server.requestCount("/good") == 0)
        for path in ["/1a", "/2a", "/1b", "/2b"] { server.release(path) }
        for task in [tasks[1], tasks[2], others[1], others[2], good] { #expect(await task.value == nil) }
        for task in [tasks[0], others[0]] { #expect(await task.value?.outcome == .timeout) }
    }

    @Test(
        "Downloads that have ended use up nothing of their host's rate, and a rate binds its own",
        arguments: [true, false])
    func endedOnes(isRevoked: Bool) async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader { $0.maxConnectionsPerHost = 6 }
        let slow = try await downloader.profile { $0.hosts.requestsPerSecond = 0.5 }
        let permit = DownloadPermit()
        let urls = (0..<100).map { server.url("/old/\($0)") }
        let tasks = urls.map { url in
            Task {
                _ = try? await downloader.download(url, options: .uninspected, profile: slow, permit: permit)
            }
        }
        await server.waitForRequests(1)
        try await until {
            await downloader.states(of: urls).values.count { $0.reason == "its rate, 0.5/s" } >= 90
        }
        #expect(try await downloader.download(server.url("/free"), options: .uninspected).body.bytes == [1])
        if isRevoked {
            permit.revoke()
            await downloader.endRevoked()
        } else {
            for task in tasks { task.cancel() }
        }
        for task in tasks { await task.value }
        #expect(await downloader.activity.operations == 0)
        let next = try await downloader.download(
            server.url("/next"), options: .uninspected, profile: slow, permit: nil)
        #expect(next.tries == 1)
        let times = server.requests.map(\.time)
        // A few of the first list were let in by then; the others would take three minutes.
        let free = try #require(server.requests.first { $0.path == "/free" })
        #expect(free.time - times[0] < 10 && times[times.count - 1] - free.time < 30, "\(times)")
        #expect(server.requests.last?.path == "/next" && times.count < 12)
    }

    private func failure(of task: Task<DownloadedImage, any Error>) async -> WebImageError.Code? {
        switch await task.result {
        case .success: nil
        case .failure(let error): (error as? WebImageError)?.code
        }
    }
}
