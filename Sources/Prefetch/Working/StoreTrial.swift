internal import Glibc
internal import Threading
internal import WebImage

/// Who tries to store the image of a URL, whose file may be all that is broken: the worker that meets it leaves it to the others once. Where
/// every worker that works has failed, with one alone a second time, it ends as `notStored`.
struct StoreTrial {
    enum Step {
        case go
        /// It is left open, for others.
        case leave
        /// Nobody can store it.
        case end(WebImageError)
    }

    let job: JobWork
    let position: Int

    private var faults: LocalFaults { job.worker.faults }
    private var name: UnstoredURLs.Name { UnstoredURLs.Name(batch: job.batch.batch, index: job.index(of: position)) }

    /// Before its first try with this claim. One that failed here before costs no request while others have still to try it.
    nonisolated(nonsending) func begin() async -> Step {
        if faults.files.isEmpty { return .go }
        guard let failure = faults.files[name] else { return .go }
        return await step(after: failure)
    }

    /// After a local fault.
    nonisolated(nonsending) func meet(_ error: WebImageError) async -> Step {
        if [EMFILE, ENFILE].contains(error.underlyingCode) {
            await job.worker.manager.downloader.closeIdleConnections()
        }
        guard await faults.isOfItsFile(error) else { return .go }
        if job.worker.shutdown.draining.isOpen { return .leave }
        return await step(after: faults.files.fail(name, error))
    }

    func succeed(_ outcome: PrefetchOutcome) {
        faults.succeed(isStored: outcome == .downloaded)
        if !faults.files.isEmpty { faults.files.forget(name) }
    }

    private nonisolated(nonsending) func step(after failure: UnstoredURLs.Failure) async -> Step {
        switch await job.unstored(at: position, tries: failure.tries) {
        case .leave:
            faults.files.leave()
            return .leave
        case .tryAgain: return .go
        case .end:
            faults.files.forget(name)
            return .end(failure.error)
        }
    }
}
