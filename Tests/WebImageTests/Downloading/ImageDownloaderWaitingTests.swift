import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("What a download waits for", .timeLimit(.minutes(5)))
struct ImageDownloaderWaitingTests {
    @Test("A silent transfer, a pause between tries, a full host and a full downloader are told apart")
    func states() async throws {
        let server = try OriginServer()
        for path in ["/silent", "/slow", "/queued"] {
            server.route(path, OriginResponse(body: [1], fault: .stallBeforeHeader))
        }
        server.route("/busy", OriginResponse.busy(retryAfter: 50))
        let port = server.url("").split(separator: ":").last.map { $0.filter(\.isNumber) } ?? ""
        let named = "http://one.test:\(port)"
        let downloader = try makeDownloader {
            $0.maxConnectionsPerHost = 1
            $0.limitsOpenedAddresses = false
            $0.resolve = ["one.test:\(port):127.0.0.1"]
            $0.stalledAfter = 0.2
            $0.maxStalledDownloads = 1
            $0.maxConcurrentDownloads = 2
        }
        let urls = [
            server.url("/silent"), server.url("/busy"), "\(named)/slow", "\(named)/queued", server.url("/queued"),
        ]
        func phases() async -> [DownloadState.Phase?] {
            let states = await downloader.states(of: Set(urls))
            return urls.map { states[$0]?.phase }
        }
        var tasks: [Task<Void, Never>] = []
        func begin(_ url: String) { tasks.append(Task { _ = await downloader.failure(url) }) }
        begin(urls[0])
        try await until { await phases()[0] == .stalled }
        begin(urls[1])
        try await until { await phases()[1] == .retrying }
        let busy = try #require(await downloader.states(of: [urls[1]])[urls[1]])
        #expect(busy.reason == "HTTP 503 (Retry-After)" && busy.tries == 1 && busy.host == "127.0.0.1")
        #expect(busy.remaining.map { (1...50).contains($0) } == true)
        begin(urls[2])
        try await until { await phases()[2] == .transferring }
        begin(urls[3])
        try await until { await phases()[3] == .waitingForHost }
        #expect(await downloader.states(of: [urls[3]])[urls[3]]?.host == "one.test")
        // Two hold a slot now, and no more may be stalled.
        server.route("/other", OriginResponse(body: [1], fault: .stallBeforeHeader))
        begin(server.url("/other"))
        await server.waitForRequests(1, to: "/other")
        begin(urls[4])
        try await until { await phases()[4] == .waitingForSlot }
        #expect(await downloader.states(of: ["http://else/"]).isEmpty)
        await downloader.cancelAllDownloads()
        for task in tasks { await task.value }
        #expect(await phases() == [nil, nil, nil, nil, nil])
    }
}
