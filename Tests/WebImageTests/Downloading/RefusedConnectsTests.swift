import TestSupport
import Testing

@testable import WebImage

@Suite("Connects that are refused because there are too many")
struct RefusedConnectsTests {
    @Test(
        "A host with connections is not dead; three of them, or hosts that answer later, excuse the others for half a minute"
    )
    func rules() {
        let refused = RefusedConnects()
        #expect(!refused.add("dead", isConnected: false, now: 0))
        #expect(refused.add("a", isConnected: true, now: 1))
        #expect(refused.add("b", isConnected: true, now: 2))
        #expect(!refused.add("dead", isConnected: false, now: 3), "two hosts may be busy by themselves")
        #expect(!refused.add("c", isConnected: false, now: 4))
        refused.didAnswer("c", now: 5)
        #expect(refused.add("dead", isConnected: false, now: 6))
        #expect(refused.add("new", isConnected: false, now: 30))
        #expect(!refused.add("new", isConnected: false, now: 36), "of the three only one is left")
        refused.didAnswer("never refused", now: 36)
        #expect(!refused.add("new", isConnected: false, now: 37))
        // A host that was down for long answers again: that says nothing.
        refused.didAnswer("new", now: 100)
        #expect(!refused.add("dead", isConnected: false, now: 101))
    }

    @Test("Beside a connection of ours 32 refused ones of a URL count as no try; then its tries are used up")
    func bound() async throws {
        let server = try SingleConnectionPort()
        let site = "http://127.0.0.1:\(server.port)"
        let downloader = try makeDownloader {
            $0.maxTries = 2
            ($0.retryBaseDelay, $0.retryMaxDelay) = (0.001, 0.001)
        }
        let silent = Task { await downloader.failure("\(site)/silent") }
        try await until { server.hasRequest() }
        let error = await downloader.failure("\(site)/refused")
        #expect(error?.code == .cannotConnectToHost && error?.tries == 34, "\(String(describing: error))")
        #expect(downloader.processorTime < .seconds(1), "\(downloader.processorTime)")
        silent.cancel()
        #expect(await silent.value?.code == .cancelled)
    }
}
