import Prefetch
import Redis
import TestSupport
import Testing

/// Commands that read, on a Redis that does not always answer.
@Suite("Reading commands", .timeLimit(.minutes(5)))
struct ReadingCommandTests {
    @Test("A connection that is cut once is made again", arguments: 0..<4)
    func cutOnce(skipping: Int) async throws {
        let remote = try await RemoteBatch()
        _ = try await remote.submit(["http://127.0.0.1:1/a"], as: "b")
        for fault in [FaultProxy.Fault.cutBeforeRequest, .cutBeforeReply] {
            let proxy = FaultProxy(target: remote.redis.socketPath)
            proxy.arm(fault, skipping: skipping)
            let status = try await ChildProcess(
                builtProduct("prefetch-coord"), ["failures", "b", "--redis", proxy.url])
            #expect(await status.wait() == .exited(0), "\(fault): \(status.stderr)")
        }
    }

    @Test("status shows the newest batches and those that run, and says how many others there are")
    func newest() async throws {
        let remote = try await RemoteBatch()
        for number in 0..<6 {
            _ = try await remote.submit(["http://127.0.0.1:1/\(number)"], as: "b\(number)")
            if number != 1 { _ = try await remote.queue.batches.cancel(batch: "b\(number)") }
        }
        func status(_ options: [String], exits code: Int32 = 0) async throws -> String {
            let status = try await remote.coord(["status"] + options)
            #expect(await status.wait() == .exited(code), "\(status.stderr)")
            return status.stdout
        }
        let few = try await status(["--limit", "2"])
        let shown = (0..<6).filter { few.contains("b\($0) ") }
        #expect(shown == [1, 4, 5], "\(few)")
        #expect(few.contains("3 older batches not shown: --all, or --limit N"))
        let json = try await status(["--limit", "2", "--json"])
        #expect(json.contains(#""batches_left_out":3"#) && !json.contains(#""b0""#))
        for options in [[], ["--all"], ["--limit", "6"]] {
            let all = try await status(options)
            #expect((0..<6).allSatisfy { all.contains("b\($0) ") } && !all.contains("not shown"), "\(all)")
        }
        for options in [["b1", "--all"], ["--limit", "0"], ["--all", "--limit", "3"]] {
            _ = try await status(options, exits: 64)
        }
    }
}
