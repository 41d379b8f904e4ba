internal import ArgumentParser
internal import Prefetch

/// A batch that was queued for workers elsewhere.
struct QueuedBatch {
    private let id: String
    private let session: Session
    private let location: RedisLocation

    init(_ id: String, _ session: Session, _ location: RedisLocation) {
        (self.id, self.session, self.location) = (id, session, location)
    }

    /// Waits for its end; summary and exit code as of a run.
    func follow(
        _ stop: StopRequest, _ progress: ProgressArguments, _ verbosity: Verbosity, allowed: PrefetchSettings.Share?,
        isJSON: Bool
    ) async throws {
        let follower = BatchFollower(
            queue: session.queue, id: id, mode: progress.mode(verbosity),
            allowNetHint: { "start the workers with --allow-net \(BatchRun.address($0))" }, waitLimit: nil,
            isColoured: progress.isColoured)
        guard let status = try await session.untilStopped(stop, { try await follower.follow() }) else {
            let name = TerminalText.escaped(id)
            Console.note("\(name) runs on; come back with: \(Shell.program) watch \(name)\(location.words)")
            throw ExitCode(130)
        }
        if isJSON {
            Console.print(BatchAnswer(status).line)
        } else {
            for line in BatchText.summary(status) { Console.print(line) }
        }
        let code = BatchExit.code(status, allowed: allowed)
        if code != 0 { throw ExitCode(code) }
    }
}
