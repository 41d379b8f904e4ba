import Testing

@testable import WebImage

@Suite("Connections beside a fixed number of transfers")
struct ConnectionWatchTests {
    private var watch = ConnectionWatch()

    /// Quarters of a second with 64 transfers, of which 5 fail to connect to 5 hosts if `fails`.
    private mutating func take(
        seconds: Double, fails: Bool, connections: Int = 130, answers: Int = 1,
        kind: TransferSample.HostFailure.Kind = .connect
    ) {
        for _ in 0..<Int(seconds * 4) {
            var sample = TransferSample(seconds: 0.25)
            (sample.answered, sample.running, sample.connections, sample.hosts) = (40, 64, connections, 40)
            if fails {
                sample.failures = (0..<5).map {
                    TransferSample.HostFailure(kind, of: "h\($0)", count: 1, isKnown: true, answers: answers)
                }
            }
            watch.take(sample)
        }
    }

    @Test("They are closed while connects fail, and kept again after 30 s, then 60 s")
    mutating func closes() {
        take(seconds: 2, fails: false)
        #expect(watch.keepsIdleConnections)
        #expect(!watch.makesRoom)
        take(seconds: 0.25, fails: true)
        #expect(!watch.keepsIdleConnections && watch.makesRoom)
        take(seconds: 3.25, fails: false, connections: 64)
        #expect(!watch.makesRoom)
        take(seconds: 26.25, fails: false, connections: 64)
        #expect(!watch.keepsIdleConnections)
        take(seconds: 0.5, fails: false, connections: 64)
        #expect(watch.keepsIdleConnections)
        take(seconds: 1, fails: true)
        #expect(!watch.keepsIdleConnections)
        take(seconds: 58.5, fails: false, connections: 64)
        #expect(!watch.keepsIdleConnections)
        take(seconds: 1, fails: false, connections: 64)
        #expect(watch.keepsIdleConnections)
    }

    @Test("They are kept if there are hardly more connections than transfers, and whatever bodies do")
    mutating func otherCauses() {
        take(seconds: 2, fails: false)
        take(seconds: 2, fails: true, connections: 70)
        #expect(watch.keepsIdleConnections)
        take(seconds: 10, fails: false)
        take(seconds: 2, fails: true, kind: .body)
        #expect(watch.keepsIdleConnections)
    }

    @Test(
        "They are kept again if as many connects fail without them, and stay closed if the hosts answer others meanwhile"
    )
    mutating func hosts() {
        take(seconds: 2, fails: false)
        take(seconds: 1, fails: true, answers: 0)
        #expect(!watch.keepsIdleConnections)
        take(seconds: 9, fails: true, connections: 64, answers: 0)
        #expect(watch.keepsIdleConnections)
        take(seconds: 9, fails: true, answers: 0)
        #expect(watch.keepsIdleConnections)
        watch = ConnectionWatch()
        take(seconds: 2, fails: false)
        take(seconds: 20, fails: true)
        #expect(!watch.keepsIdleConnections)
    }
}
