import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("ImageDownloader and hosts in trouble", .timeLimit(.minutes(5)))
struct ImageDownloaderHostTests {
    @Test("URLs of a host that is away wait, while others go on, and end well when it is back")
    func waitsForAHost() async throws {
        let closed = try ClosedPort()
        let good = try OriginServer()
        good.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 3
            $0.hosts.waitLimit = 50
            $0.maxConcurrentDownloads = 2
        }
        let dead = (0..<20).map { index in
            Task { try await downloader.download("http://127.0.0.1:\(closed.port)/\(index)") }
        }
        let url = "http://127.0.0.1:\(closed.port)/19"
        try await until { await downloader.states(of: [url])[url]?.reason.contains("failures in a row") == true }
        #expect(await downloader.states(of: [url])[url]?.phase == .waitingForHost)
        for index in 0..<50 { _ = try await downloader.download(good.url("/\(index)")) }
        #expect(await downloader.currentDownloadCount == 20)
        for task in dead { task.cancel() }
        for task in dead { await #expect(throws: WebImageError.self) { try await task.value } }
    }

    @Test("A host that answers again is asked for all that waited; none of them was lost by its tries")
    func comesBack() async throws {
        let first = try OriginServer()
        let port = first.port
        await first.stop()
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 3
            $0.hosts.waitLimit = 50
            $0.maxTries = 2
        }
        let url = "http://127.0.0.1:\(port)/a/19"
        let waiting = (0..<20).map { index in
            Task { try await downloader.download("http://127.0.0.1:\(port)/a/\(index)") }
        }
        try await until { await downloader.states(of: [url])[url]?.reason.contains("failures in a row") == true }
        let second = try OriginServer(port: port)
        second.setFallback { _ in OriginResponse(body: [7]) }
        var lost = 0
        for task in waiting {
            do { #expect(try await task.value.body.bytes == [7]) } catch { lost += 1 }
        }
        // Those that found nobody twice before anything was known of the host.
        #expect(lost <= 1, "\(lost)")
    }

    /// It never answers what begins with /hang.
    private func hangingServer() throws -> OriginServer {
        let server = try OriginServer()
        server.setFallback { request in
            request.path.hasPrefix("/hang") ? OriginResponse(fault: .stallBeforeHeader) : OriginResponse(body: [1])
        }
        return server
    }

    @Test("A host that never answers some URLs is asked for the others: none of those is lost to them")
    func answersOthers() async throws {
        let server = try hangingServer()
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 3
            $0.hosts.waitLimit = 8
            $0.maxConcurrentDownloads = 3
            $0.maxStalledDownloads = 0
            $0.downloadTimeout = 0.2
        }
        let hanging = (0..<3).map { index in Task { await downloader.failure(server.url("/hang/\(index)")) } }
        await server.waitForRequests(3)
        for index in 0..<4 { #expect(try await downloader.download(server.url("/\(index)")).body.bytes == [1]) }
        for task in hanging { #expect(await task.value?.code == .timedOut) }
    }

    @Test("A host is not given up for the URLs that come first and are never answered")
    func probesAny() async throws {
        let server = try hangingServer()
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 4
            $0.hosts.waitLimit = 20
            $0.maxConcurrentDownloads = 4
            $0.maxStalledDownloads = 0
            $0.downloadTimeout = 0.2
            $0.maxTries = 1
        }
        await downloader.setSuspended(true)
        let hanging = (0..<8).map { index in Task { await downloader.failure(server.url("/hang/\(index)")) } }
        try await until { await downloader.currentDownloadCount == 8 }
        let good = (0..<92).map { index in Task { try await downloader.download(server.url("/\(index)")) } }
        try await until { await downloader.currentDownloadCount == 100 }
        await downloader.setSuspended(false)
        for task in good { #expect(try await task.value.body.bytes == [1]) }
        for task in hanging { #expect(await task.value?.code == .timedOut) }
    }

    @Test("After its wait limit a host is given up: what waits and what comes ends at once, as its last request did")
    func givesUp() async throws {
        let closed = try ClosedPort()
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 2
            $0.hosts.waitLimit = 0.3
        }
        let errors = await withTaskGroup(of: WebImageError?.self) { group in
            for index in 0..<30 {
                group.addTask { await downloader.failure("http://127.0.0.1:\(closed.port)/\(index)") }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(errors.count == 30)
        for error in errors { #expect(error?.code == .cannotConnectToHost) }
        #expect(errors.contains { $0?.message.hasPrefix("the host has given no answer for 0 s: ") == true })
        let late = await downloader.failure("http://127.0.0.1:\(closed.port)/late")
        #expect(late?.code == .cannotConnectToHost)
        #expect(downloader.processorTime < .seconds(1), "\(downloader.processorTime)")
    }

    @Test("URLs that a host never answers end soon after the last of the others")
    func lastWait() async throws {
        let server = try hangingServer()
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 3
            $0.hosts.waitLimit = 3600
            $0.hosts.shortensLastWait = true
            $0.downloadTimeout = 0.2
        }
        // It has completed a body: a probe is no try of those that wait.
        #expect(try await downloader.download(server.url("/good")).body.bytes == [1])
        let errors = await failures(of: 12, server.url("/hang/"), downloader)
        #expect(errors.count == 12 && errors.allSatisfy { $0?.code == .timedOut }, "\(errors)")
        #expect(errors.contains { $0?.message.hasPrefix("the host has given no answer for ") == true }, "\(errors)")
    }

    @Test("On a host that has never completed a body, a probe is a try of every URL that waits", arguments: [1, 2])
    func probesStandForAll(tries: Int) async throws {
        let closed = try ClosedPort()
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 3
            $0.hosts.waitLimit = 3600
            $0.maxConcurrentDownloads = 3
            $0.maxTries = tries
        }
        let errors = await failures(of: 30, "http://127.0.0.1:\(closed.port)/", downloader)
        for error in errors { #expect(error?.code == .cannotConnectToHost) }
        #expect(errors.count { $0?.message.hasPrefix("\(tries) probe") == true && $0?.tries == 0 } > 20, "\(errors)")
    }

    @Test("A host that only asks for back-off gets a request per Retry-After, which stands for every URL that waits")
    func onlyBusy() async throws {
        let server = try OriginServer()
        server.setFallback { _ in .busy(retryAfter: 1) }
        let downloader = try makeDownloader {
            $0.hosts.backsOff = true
            $0.maxConcurrentDownloads = 4
            $0.maxTries = 3
            $0.maxRetryAfter = 0.1
        }
        let errors = await failures(of: 40, server.url("/"), downloader)
        for error in errors { #expect(error?.httpStatus == 503) }
        #expect(errors.count { $0?.message.hasPrefix("3 probes of its host failed: ") == true } > 30, "\(errors)")
        // The first four, a probe for each of three tries, and what was let in beside one.
        #expect(server.requests.count <= 12, "\(server.requests.count)")
    }

    @Test("A host that has asked for back-off is asked for more as it answers, however slowly it sends")
    func answersSlowly() async throws {
        let server = try OriginServer()
        server.setFallback { request in
            request.path.hasPrefix("/busy")
                ? .busy(retryAfter: 1)
                : OriginResponse(body: [UInt8](repeating: 1, count: 600), fault: .drip(bytes: 1, seconds: 0.1))
        }
        let downloader = try makeDownloader {
            $0.hosts.backsOff = true
            $0.maxTries = 1
            $0.maxRetryAfter = 0.05
        }
        #expect(await downloader.failure(server.url("/busy"))?.httpStatus == 503)
        let slow = (0..<6).map { index in Task { await downloader.failure(server.url("/slow/\(index)")) } }
        // Each takes a minute.
        await server.waitForRequests(7)
        for task in slow { task.cancel() }
        for task in slow { #expect(await task.value?.code == .cancelled) }
    }

    @Test("A host that answers the first request for each URL with 503 loses none of them")
    func busyAtFirst() async throws {
        let server = try OriginServer()
        for index in 0..<20 { server.route("/\(index)", sequence: [.busy(retryAfter: 1), OriginResponse(body: [7])]) }
        let downloader = try makeDownloader {
            $0.hosts.backsOff = true
            $0.maxConcurrentDownloads = 4
            $0.maxTries = 2
            $0.maxRetryAfter = 0.05
        }
        #expect(await failures(of: 20, server.url("/"), downloader).allSatisfy { $0 == nil })
    }

    private func failures(of count: Int, _ url: String, _ downloader: ImageDownloader) async -> [WebImageError?] {
        await withTaskGroup(of: WebImageError?.self) { group in
            for index in 0..<count { group.addTask { await downloader.failure("\(url)\(index)") } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test("A host that was given up is asked again, one URL at a time, and has all of them once it answers")
    func isFoundAgain() async throws {
        let first = try OriginServer()
        let port = first.port
        await first.stop()
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 2
            $0.hosts.waitLimit = 0.2
            $0.maxTries = 1
        }
        let url = "http://127.0.0.1:\(port)/"
        try await until {
            await downloader.failure(url)?.message.hasPrefix("the host has given no answer for ") == true
        }
        let second = try OriginServer(port: port)
        second.setFallback { _ in OriginResponse(body: [7]) }
        // Those that come before its next probe is due still end at once.
        try await until { await downloader.failure(url) == nil }
        for index in 0..<20 { #expect(try await downloader.download("\(url)\(index)").body.bytes == [7]) }
    }

    @Test("URLs that come after a host was given up for others that it never answers are asked for themselves")
    func comesLater() async throws {
        let server = try hangingServer()
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 3
            $0.hosts.waitLimit = 0.2
            $0.maxStalledDownloads = 0
            $0.downloadTimeout = 0.1
            $0.maxTries = 1
        }
        await withTaskGroup { group in
            for index in 0..<8 {
                group.addTask { #expect(await downloader.failure(server.url("/hang/\(index)"))?.code == .timedOut) }
            }
        }
        for index in 0..<20 { #expect(try await downloader.download(server.url("/\(index)")).body.bytes == [1]) }
    }

    @Test("A probe that is cancelled is followed by the next one")
    func probeIsLost() async throws {
        let server = try hangingServer()
        let downloader = try makeDownloader {
            $0.hosts.failuresInARow = 2
            $0.hosts.waitLimit = 30
            $0.maxTries = 2
            $0.downloadTimeout = 0.3
        }
        let urls = (0..<2).map { server.url("/hang/\($0)") }
        let hanging = urls.map { url in Task { await downloader.failure(url) } }
        try await until {
            await downloader.states(of: Set(urls)).values.contains { $0.reason.contains("failures in a row") }
        }
        // Not tried yet, so it is the probe; and nobody wants it any more while it is in flight.
        let probe = Task { await downloader.failure(server.url("/hang/probe")) }
        await server.waitForRequests(1, to: "/hang/probe")
        probe.cancel()
        _ = await probe.value
        #expect(try await downloader.download(server.url("/good")).body.bytes == [1])
        for task in hanging { task.cancel() }
        for task in hanging { _ = await task.value }
    }

    @Test("Retry-After holds back every request to the host, and no other host's")
    func retryAfter() async throws {
        let (busy, good) = (try OriginServer(), try OriginServer())
        busy.route("/busy", sequence: [OriginResponse.busy(retryAfter: 1), OriginResponse(body: [1])])
        busy.setFallback { _ in OriginResponse(body: [2]) }
        good.setFallback { _ in OriginResponse(body: [3]) }
        let downloader = try makeDownloader { $0.hosts.backsOff = true }
        let first = Task { try await downloader.download(busy.url("/busy")) }
        let url = busy.url("/busy")
        try await until { await downloader.states(of: [url])[url]?.phase == .retrying }
        let second = Task { try await downloader.download(busy.url("/other")) }
        let other = busy.url("/other")
        try await until { await downloader.states(of: [other])[other]?.phase == .waitingForHost }
        #expect(await downloader.states(of: [other])[other]?.reason == "HTTP 503 (Retry-After)")
        for index in 0..<20 { _ = try await downloader.download(good.url("/\(index)")) }
        #expect(busy.requestCount() == 1)
        #expect(try await second.value.body.bytes == [2])
        #expect(try await first.value.body.bytes == [1])
        let times = busy.requests.map(\.time)
        #expect(times[1] - times[0] >= 0.99)
    }

    @Test("A rate holds for redirects and further tries as for any request")
    func rate() async throws {
        let server = try OriginServer()
        server.route("/moved", .redirect(to: "/again"))
        server.route("/again", sequence: [OriginResponse(status: 500), OriginResponse(body: [1])])
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader { $0.hosts.requestsPerSecond = 50 }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try await downloader.download(server.url("/moved")) }
            for index in 0..<40 { group.addTask { _ = try await downloader.download(server.url("/\(index)")) } }
            try await group.waitForAll()
        }
        let times = server.requests.map(\.time)
        #expect(times.count == 44)
        #expect(times[43] - times[0] >= 43 / 50.0 - 0.05)
    }
}
