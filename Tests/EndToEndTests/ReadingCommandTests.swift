import Prefetch
import Redis
import TestSupport
import Testing

/// Commands that read, on a Redis that does not always answer.
@Suite("Reading commands", .timeLimit(.minutes(5)))
struct ReadingCommandTests: CommandSuite {
    @Test("A connection that is cut once is made again", arguments: 0..<4)
    func cutOnce(skipping: Int) async throws {
        let remote = try await RemoteBatch()
        try await remote.submit(["http://127.0.0.1:1/a"], as: "b")
        for fault in [FaultProxy.Fault.cutBeforeRequest, .cutBeforeReply] {
            let proxy = FaultProxy(target: remote.redis.socketPath)
            proxy.arm(fault, skipping: skipping)
            try await ran(["failures", "b", "--redis", proxy.url])
        }
    }
}
