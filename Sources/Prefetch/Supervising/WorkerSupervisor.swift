internal import Glibc
internal import Threading
internal import WebImage

/// Keeps a number of worker processes running: one that dies is restarted, one that cannot work ends them all with its reason.
///
/// Every worker is waited for, and dies with this process. A worker that exits with 0 has left deliberately and is not restarted.
package actor WorkerSupervisor {
    package struct Configuration: Sendable {
        /// Path of the program; default is `prefetch-worker` in the folder of the running program.
        package var executable: String
        /// The arguments of each worker, by its number from 0.
        package var arguments: @Sendable (Int) -> [String]
        /// Number of workers; at least 1.
        package var workers: Int
        /// The descriptor that becomes stdout and stderr of the workers; default 2.
        package var output: Int32
        /// A descriptor that each worker inherits under the same number, named by ``inheritedOption``; nil (default) is none.
        package var inherited: Int32?
        /// Where the workers note which URLs they decode, inherited likewise; nil (default) is nowhere.
        package var notes: DecodeNotes?
        /// How long ``WorkerSupervisor/kill()`` waits before SIGKILL; default 2 s.
        package var killGrace: Duration

        package init(
            executable: String = WorkerSupervisor.sibling("prefetch-worker"),
            arguments: @escaping @Sendable (_ index: Int) -> [String], workers: Int, output: Int32 = 2,
            inherited: Int32? = nil, notes: DecodeNotes? = nil, killGrace: Duration = .seconds(2)
        ) {
            self.executable = executable
            self.arguments = arguments
            self.workers = workers
            self.output = output
            self.inherited = inherited
            self.notes = notes
            self.killGrace = killGrace
        }
    }

    /// The end of a worker, other than with exit code 0.
    package struct Death: Sendable, Equatable {
        package var pid: Int32
        package var end: ChildEnd
        /// Whether this supervisor killed it, because it had not ended by itself.
        package var isKilledHere: Bool
        /// The URLs in its decoders.
        package var suspects: [DecodeNotes.Suspect]

        package init(pid: Int32, end: ChildEnd, isKilledHere: Bool = false, suspects: [DecodeNotes.Suspect] = []) {
            (self.pid, self.end, self.isKilledHere, self.suspects) = (pid, end, isKilledHere, suspects)
        }
    }

    package static let inheritedOption = "--inherited-settings"

    private let configuration: Configuration
    private let children = ChildProcesses()
    private let progress: @Sendable () async -> Int
    private let onDeath: @Sendable (Death) async -> Bool
    private var running: [Int32: Child] = [:]
    /// Started by ``startAhead()`` and not yet waited for by ``run()``.
    private var ahead: [Int: Child] = [:]
    private var crashes = CrashLoop()
    private var killed: Set<Int32> = []
    private var hasBegun = false
    private let stopping = Latch()
    private let ended = Latch()

    /// - Parameters:
    ///   - configuration: the workers to start.
    ///   - progress: any number that changes when work gets done; deaths count together only while it stays the same.
    ///   - onDeath: called for every end except exit code 0, before the worker is restarted: its jobs can be reaped at once. Returns
    ///     whether the death narrows (``CrashLoop``).
    package init(
        _ configuration: Configuration, progress: @escaping @Sendable () async -> Int,
        onDeath: @escaping @Sendable (Death) async -> Bool = { _ in false }
    ) {
        self.configuration = configuration
        self.progress = progress
        self.onDeath = onDeath
    }

    private nonisolated func program(_ index: Int) -> ChildProgram {
        let (inherited, notes) = (configuration.inherited, configuration.notes)
        let words = inherited.map { document in
            [Self.inheritedOption, "\(document)" + (notes.map { ",\($0.descriptor),\(index)" } ?? "")]
        }
        return ChildProgram(
            path: configuration.executable, arguments: configuration.arguments(index) + (words ?? []),
            output: configuration.output, errors: configuration.output, keeping: inherited ?? -1,
            keepingToo: notes?.descriptor ?? -1)
    }

    package var pids: [Int32] { running.keys.sorted() }

    /// Starts the workers before ``run()``, or ``kill()``, is called, which then finds them running. For workers that can wait for what they
    /// need. One that cannot be started is left to ``run()``.
    package func startAhead() async {
        for index in 0..<configuration.workers where !hasBegun {
            guard let child = try? await children.start(program(index)) else { return }
            running[child.pid] = child
            ahead[index] = child
        }
    }

    /// Starts the workers and returns when all have ended: after ``drain()`` or ``kill()``, deliberately, or because the task was
    /// cancelled, which drains. Call it once.
    /// - Throws: why a worker cannot work, when the others have drained.
    package func run() async throws(PrefetchError) {
        precondition(!hasBegun, "a supervisor runs once")
        hasBegun = true
        let failure = await withTaskCancellationHandler {
            await withTaskGroup(of: PrefetchError?.self) { group in
                for index in 0..<max(1, configuration.workers) { group.addTask { await self.keepRunning(index) } }
                var first: PrefetchError?
                for await failure in group {
                    guard let failure, first == nil else { continue }
                    first = failure
                    terminate()
                }
                return first
            }
        } onCancel: {
            Task { await terminate() }
        }
        ended.open()
        if let failure { throw failure }
    }

    /// Returns when ``run()`` has ended, or the task is cancelled.
    package nonisolated func waitForEnd() async { await ended.wait() }

    /// Tells every worker to finish its current transfers, restarts none any more, and returns when all have ended.
    package func drain() async {
        terminate()
        if hasBegun { await ended.wait() }
    }

    /// Tells every worker to give its jobs back and end, kills the rest after `killGrace`, and returns when all have ended.
    package func kill() async {
        terminate()
        guard hasBegun else {
            for child in ahead.values { await child.stop(waitLimit: configuration.killGrace) }
            ahead = [:]
            return
        }
        let timer = Task {
            try await Task.sleep(for: configuration.killGrace)
            for child in running.values where child.isRunning {
                killed.insert(child.pid)
                child.signal(SIGKILL, group: true)
            }
        }
        await ended.wait()
        timer.cancel()
    }

    /// Path of a program in the folder of the running one.
    package static func sibling(_ name: String) -> String { ProgramFolder.path + name }

    private func terminate() {
        stopping.open()
        for child in running.values { child.signal(SIGTERM) }
    }

    /// Runs one worker, restarting it as needed.
    /// - Returns: why a restart makes no sense.
    private func keepRunning(_ index: Int) async -> PrefetchError? {
        let program = program(index)
        var restarts = 0
        // A cancelled task ends the pause before `stopping` opens.
        while !stopping.isOpen, !Task.isCancelled {
            let started = ContinuousClock.now
            let child: Child
            do throws(ChildProcesses.StartError) {
                child =
                    if let early = ahead.removeValue(forKey: index) { early } else {
                        try await children.start(program)
                    }
            } catch {
                return PrefetchError(
                    .configuration, "cannot start \(program.path): \(error.reason)",
                    hint: "prefetch-worker belongs into the folder of prefetch-coord")
            }
            running[child.pid] = child
            // Stopping began while it was being started.
            if stopping.isOpen { child.signal(SIGTERM) }
            let end = await child.wait()
            running[child.pid] = nil
            // It got the signal before its handler was installed: it had no jobs yet.
            if end == .exited(0) || (stopping.isOpen && end == .signalled(SIGTERM)) { return nil }
            let suspects = configuration.notes?.take(index) ?? []
            let isKilledHere = killed.remove(child.pid) != nil && end == .signalled(SIGKILL)
            let narrows = await onDeath(
                Death(pid: child.pid, end: end, isKilledHere: isKilledHere, suspects: isKilledHere ? [] : suspects))
            if stopping.isOpen { return nil }
            if let refusal = refusal(of: child.pid, end: end, program) { return refusal }
            let verdict = crashes.died(at: .now, progress: await progress(), narrows: narrows)
            if let verdict { return failure(verdict, end, program) }
            // Nothing has to recover: the URL is known.
            guard !narrows else { continue }
            restarts = ContinuousClock.now - started > CrashLoop.window ? 1 : restarts + 1
            await pause(CrashLoop.pause(beforeRestart: restarts))
        }
        return nil
    }

    private func failure(_ verdict: CrashLoop.Verdict, _ end: ChildEnd, _ program: ChildProgram) -> PrefetchError {
        let what =
            switch verdict {
            case .dies: "\(CrashLoop.limit) times within \(CrashLoop.window.components.seconds) s"
            case .diesSlowly: "\(CrashLoop.most) times, and no URL finished meanwhile"
            case .diesOfAll: "\(CrashLoop.mostNarrowing) times while they decoded, and no other URL finished"
            }
        return PrefetchError(.software, "workers ended \(what), the last by \(end)", hint: byHand(program))
    }

    /// The error of a worker that reported why it cannot work: another would report the same.
    private func refusal(of pid: Int32, end: ChildEnd, _ program: ChildProgram) -> PrefetchError? {
        let kind: PrefetchError.Kind
        switch end {
        case .exited(EX_USAGE), .exited(EX_CONFIG): kind = .configuration
        case .exited(EX_UNAVAILABLE): kind = .redisUnavailable
        case .exited(EX_CANTCREAT): kind = .cacheUnavailable
        case .exited(EX_NOPERM): kind = .refused
        default: return nil
        }
        return PrefetchError(kind, "worker \(pid) cannot work: it ended with \(end)", hint: byHand(program))
    }

    private func byHand(_ program: ChildProgram) -> String {
        guard configuration.inherited != nil else { return "run it by hand to see why: \(program.commandLine)" }
        var program = program
        program.arguments.removeLast(2)
        return "run it by hand to see why, with the headers and credentials of this run: \(program.commandLine)"
    }

    /// Sleeps, or less if everything is to stop.
    private func pause(_ duration: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [stopping] in await stopping.wait() }
            group.addTask { try? await Task.sleep(for: duration) }
            await group.next()
            group.cancelAll()
        }
    }
}
