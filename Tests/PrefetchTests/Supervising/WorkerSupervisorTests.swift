import Glibc
import TestSupport
import Testing

@testable import Prefetch

@Suite("Worker supervisor", .timeLimit(.minutes(5)))
struct WorkerSupervisorTests {
    private let directory = TemporaryDirectory()
    private let deaths = Deaths()

    /// Workers that are shells; `$D` is the test's directory.
    private func supervisor(
        _ script: String, workers: Int = 1, progress: @escaping @Sendable () async -> Int = { 0 },
        narrows: @escaping @Sendable (WorkerSupervisor.Death) -> Bool = { _ in false }
    ) -> WorkerSupervisor {
        WorkerSupervisor(
            .init(
                executable: "/bin/sh", arguments: { [directory] _ in ["-c", "D='\(directory.path)'\n" + script] },
                workers: workers,
                killGrace: .milliseconds(200)),
            progress: progress,
            onDeath: { [deaths] death in
                await deaths.add(death)
                return narrows(death)
            })
    }

    private func starts() -> Int { (directory.read("starts") ?? []).count { $0 == UInt8(ascii: "\n") } }

    @Test("Workers run side by side, drain on SIGTERM, and none is left")
    func drains() async throws {
        let supervisor = supervisor(
            "trap 'exit 0' TERM; echo up >> $D/starts; while :; do sleep 0.01; done", workers: 3)
        let run = Task { try await supervisor.run() }
        #expect(await becomes { starts() == 3 })
        #expect(await becomes { await supervisor.pids.count == 3 })
        let pids = await supervisor.pids
        #expect(pids.allSatisfy { getpgid($0) == $0 })
        await supervisor.drain()
        try await run.value
        #expect(pids.allSatisfy(isGone))
        #expect(await supervisor.pids.isEmpty)
        #expect(await deaths.all.isEmpty)
    }

    @Test("A worker that dies is reported and replaced")
    func restarts() async throws {
        let supervisor = supervisor("trap 'exit 0' TERM; echo up >> $D/starts; while :; do sleep 0.01; done")
        let run = Task { try await supervisor.run() }
        #expect(await becomes { starts() == 1 })
        #expect(await becomes { await supervisor.pids.count == 1 })
        let victim = try #require(await supervisor.pids.first)
        kill(victim, SIGKILL)
        #expect(await becomes { starts() == 2 })
        #expect(await becomes { await supervisor.pids.count == 1 })
        #expect(await deaths.all == [.init(pid: victim, end: .signalled(SIGKILL))])
        #expect(await supervisor.pids.first != victim)
        await supervisor.drain()
        try await run.value
    }

    @Test("Five deaths without progress stop everything with the reason and the command to try by hand")
    func crashLoop() async throws {
        // The second worker is well; it drains when the first has failed for good.
        let script = """
            if mkdir $D/well 2>/dev/null; then trap 'echo drained > $D/drained; exit 0' TERM; while :; do sleep 0.01; done; fi
            echo up >> $D/starts; kill -SEGV $$
            """
        let supervisor = supervisor(script, workers: 2)
        let error = await #expect(throws: PrefetchError.self) { try await supervisor.run() }
        #expect(error?.message.contains("signal 11 (SIGSEGV)") == true)
        #expect(error?.hint.contains("/bin/sh -c 'D='") == true)
        #expect(starts() == CrashLoop.limit)
        #expect(await deaths.all.count == CrashLoop.limit)
        #expect(directory.read("drained") != nil)
        #expect(await supervisor.pids.isEmpty)
    }

    @Test("Deaths that narrow are no loop, however many: those of nine images, then a worker that is well")
    func narrowing() async throws {
        let script = """
            echo up >> $D/starts
            if [ $(wc -l < $D/starts) -gt 27 ]; then exit 0; fi
            kill -SEGV $$
            """
        let supervisor = supervisor(script, narrows: { $0.end == .signalled(SIGSEGV) })
        try await supervisor.run()
        #expect(starts() == 28)
        #expect(await deaths.all.count == 27)
    }

    @Test(
        "A worker that says it cannot work is not started again",
        arguments: zip(
            [64, 69, 73, 77, 78] as [Int32],
            [.configuration, .redisUnavailable, .cacheUnavailable, .refused, .configuration] as [PrefetchError.Kind]))
    func refusals(code: Int32, kind: PrefetchError.Kind) async {
        let supervisor = supervisor("echo up >> $D/starts; exit \(code)")
        let error = await #expect(throws: PrefetchError.self) { try await supervisor.run() }
        #expect(error?.kind == kind)
        #expect(error?.message.contains("exit code \(code)") == true)
        #expect(starts() == 1)
    }

    @Test("A worker that leaves by its own choice is not replaced")
    func leaves() async throws {
        let supervisor = supervisor("echo up >> $D/starts", workers: 2)
        try await supervisor.run()
        #expect(starts() == 2)
        #expect(await deaths.all.isEmpty)
    }

    @Test("A worker that does not hear is killed with all its children, and reported")
    func kills() async throws {
        let supervisor = supervisor("trap '' TERM; sleep 1000 & echo $! > $D/child; echo up >> $D/starts; wait; wait")
        let run = Task { try await supervisor.run() }
        #expect(await becomes { starts() == 1 })
        #expect(await becomes { await supervisor.pids.count == 1 })
        let pid = try #require(await supervisor.pids.first)
        let grandchild = try #require(
            Int32(String(decoding: directory.read("child") ?? [], as: UTF8.self).dropLast()))
        await supervisor.kill()
        try await run.value
        #expect(isGone(pid))
        #expect(await deaths.all == [.init(pid: pid, end: .signalled(SIGKILL), isKilledHere: true)])
        // Whoever adopts it may be slow to bury it.
        #expect(await becomes { isGone(grandchild) || isZombie(grandchild) })
    }

    @Test("Cancelling the run drains it, also in the pause before a restart")
    func cancellation() async throws {
        let supervisor = supervisor("echo up >> $D/starts; exit 1")
        let run = Task { try await supervisor.run() }
        #expect(await becomes { starts() == 4 })
        run.cancel()
        try await run.value
        #expect(starts() == 4)
    }

    @Test("A program that is not there is a configuration error that names it")
    func missingProgram() async {
        let supervisor = WorkerSupervisor(
            .init(executable: directory.path("no-worker"), arguments: { _ in [] }, workers: 2), progress: { 0 })
        let error = await #expect(throws: PrefetchError.self) { try await supervisor.run() }
        #expect(error?.kind == .configuration)
        #expect(error?.message.contains(directory.path("no-worker")) == true)
    }

    @Test("Deaths count as a loop only close together and without progress")
    func crashLoopRule() {
        let start = ContinuousClock.now
        /// The first verdict, and after how many deaths.
        func verdict(
            every gap: Duration, narrows: (Int) -> Bool = { _ in false }, progress: (Int) -> Int?
        ) -> (CrashLoop.Verdict, Int)? {
            var loop = CrashLoop()
            for death in 0..<1000 {
                let verdict = loop.died(at: start + gap * death, progress: progress(death), narrows: narrows(death))
                if let verdict { return (verdict, death + 1) }
            }
            return nil
        }
        #expect(verdict(every: .seconds(1)) { _ in 0 } ?? (.diesOfAll, 0) == (.dies, 5))
        #expect(verdict(every: .zero) { _ in nil } ?? (.diesOfAll, 0) == (.dies, 5))
        // On a slow machine they are far apart; a server that serves for days has no such number.
        #expect(verdict(every: .seconds(3)) { _ in 7 } ?? (.diesOfAll, 0) == (.diesSlowly, 20))
        #expect(verdict(every: .seconds(3)) { _ in nil } == nil)
        #expect(verdict(every: .zero) { $0 / 2 } == nil)
        // Three crash images cost nine deaths without an outcome between them, 100 make it the decoder.
        #expect(verdict(every: .zero, narrows: { $0 < 9 }) { _ in 0 } ?? (.diesOfAll, 0) == (.dies, 9 + 5))
        #expect(verdict(every: .zero, narrows: { _ in true }) { _ in 0 } ?? (.dies, 0) == (.diesOfAll, 300))
        #expect(verdict(every: .zero, narrows: { _ in true }) { $0 / 299 } == nil)
        // Others between them do not add up, and do not keep it from being the decoder.
        #expect(verdict(every: .zero, narrows: { $0 % 4 == 3 }) { $0 / 1100 } == nil)
        #expect(verdict(every: .zero, narrows: { $0 % 2 == 1 }) { _ in 0 } ?? (.dies, 0) == (.diesOfAll, 600))
        #expect(
            (1...8).map { CrashLoop.pause(beforeRestart: $0) }
                == [100, 200, 400, 800, 1600, 2000, 2000, 2000].map { .milliseconds($0) })
    }

    private func isZombie(_ pid: Int32) -> Bool {
        String(decoding: readFile("/proc/\(pid)/stat") ?? [], as: UTF8.self).contains(") Z ")
    }
}

private actor Deaths {
    var all: [WorkerSupervisor.Death] = []

    func add(_ death: WorkerSupervisor.Death) { all.append(death) }
}
