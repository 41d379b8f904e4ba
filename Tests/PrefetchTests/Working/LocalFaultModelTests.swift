import Glibc
import Origin
import Testing
import Threading
import WebImage

@testable import Prefetch

/// What decides about local faults, without a disk.
@Suite("The parts of local faults", .timeLimit(.minutes(5)))
struct LocalFaultModelTests {
    @Test("A back-off doubles up to half a minute, and begins anew with a success")
    func backOff() {
        var pause = BackOff(first: .milliseconds(500))
        let start = ContinuousClock.now
        #expect(!pause.isRunning && pause.isDue(now: start) && pause.rest(now: start) == .zero)
        var (now, tries) = (start, 0)
        // What a loop that is woken all the time does in five minutes.
        while now - start < .seconds(300) {
            if pause.isDue(now: now) {
                tries += 1
                pause.fail(now: now)
            }
            now += .milliseconds(10)
        }
        #expect(tries == 15)
        #expect(pause.rest(now: now) <= .seconds(30))
        pause.succeed()
        #expect(!pause.isRunning && pause.isDue(now: now))
        pause.fail(now: now, jitter: 0.5)
        #expect(pause.isRunning && pause.rest(now: now) == .milliseconds(250))
    }

    @Test("A few faults are of their files; more at once are the disk's, unless as many images are well")
    func tally() {
        let start = ContinuousClock.now
        var tally = FaultTally()
        // Eight, a ninth, and one when they are forgotten.
        let times = (0..<8).map { start + .milliseconds($0) } + [start + .seconds(1), start + .seconds(12)]
        let first = times.map { tally.fail(now: $0) }
        #expect(first == Array(repeating: true, count: 8) + [false, true])
        tally = FaultTally()
        // One file in ten.
        let isOfFiles = (0..<100).map { number in
            tally.succeed(9)
            return tally.fail(now: start + .milliseconds(number))
        }
        #expect(isOfFiles.allSatisfy { $0 })
    }

    @Test("A gate stays closed until everything that closed it is mended, and tells it once")
    func causes() async {
        let told = Locked<[String?]>([])
        let gate = FaultGate { message in told.withLock { $0.append(message) } }
        gate.reopen(.files)
        gate.close("full", by: .files)
        gate.close("no sync", by: .sync)
        gate.close("fuller", by: .files)
        #expect(gate.message == "fuller" && gate.isClosed(by: .sync) && !gate.isClosed(by: .room))
        gate.reopen(.files)
        #expect(gate.message == "no sync")
        gate.reopen(.sync)
        #expect(gate.message == nil)
        await gate.wait()
        #expect(told.withLock { $0 } == ["full", nil])
    }

    @Test("Whose job is called back leaves a closed gate, and others stay")
    func revoked() async {
        let gate = FaultGate()
        gate.close("full", by: .files)
        let (gone, stays) = (DownloadPermit(), DownloadPermit())
        let left = Locked<[String]>([])
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await gate.wait(for: stays)
                left.withLock { $0.append("stays") }
            }
            let first = Task {
                await gate.wait(for: gone)
                left.withLock { $0.append("gone") }
            }
            gone.revoke()
            gate.dismissRevoked()
            await first.value
            #expect(left.withLock { $0 } == ["gone"])
            gate.reopen(.files)
        }
        #expect(left.withLock { $0 } == ["gone", "stays"])
        // A permit that was revoked before.
        gate.close("full", by: .files)
        await gate.wait(for: gone)
    }

    @Test("What fails here is known with its tries until it is well")
    func names() {
        let urls = UnstoredURLs()
        let name = UnstoredURLs.Name(batch: BatchIdentity(id: "b", nonce: "n"), index: 3)
        #expect(urls.isEmpty && urls[name] == nil)
        #expect(urls.fail(name, WebImageError(.localFault, "one")).tries == 1)
        #expect(urls.fail(name, WebImageError(.localFault, "two")).tries == 2)
        #expect(urls[name]?.error.message == "two")
        urls.forget(name)
        #expect(urls.isEmpty)
    }
}
