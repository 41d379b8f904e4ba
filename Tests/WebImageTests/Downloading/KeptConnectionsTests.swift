import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("Kept connections", .timeLimit(.minutes(5)))
struct KeptConnectionsTests {
    private static let (urls, slots, perHost, known) = (2_500, 64, 6, 128)

    @Test(
        "A host gets no more connections than it may have transfers, however many hosts take turns",
        arguments: [1, 40, 250])
    func usedAgain(hosts: Int) async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = Self.slots
            $0.maxConnectionsPerHost = Self.perHost
            $0.resolve = (0..<hosts).map { "h\($0).test:\(server.port):127.0.0.1" }
        }
        var random = SplitMix64(state: 41)
        var order = (0..<Self.urls).map { "http://h\($0 % hosts).test:\(server.port)/\($0)" }
        order.shuffle(using: &random)
        let count = try await inFlight(Self.known, of: order) { try await downloader.download($0).body.count }
        #expect(count == Self.urls)
        #expect(server.requestCount() == Self.urls)
        #expect(server.connectionCount <= Self.perHost * hosts)
    }

    /// Runs `body` for all, as many at once as a worker's jobs have URLs.
    private func inFlight(
        _ most: Int, of urls: [String], _ body: @escaping @Sendable (String) async throws -> Int
    ) async throws -> Int {
        try await withThrowingTaskGroup(of: Int.self) { group in
            var sum = 0
            for (index, url) in urls.enumerated() {
                if index >= most { sum += try await group.next() ?? 0 }
                group.addTask { try await body(url) }
            }
            return try await group.reduce(into: sum) { $0 += $1 }
        }
    }
}
