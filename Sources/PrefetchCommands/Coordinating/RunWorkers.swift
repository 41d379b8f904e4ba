internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading
internal import WebImage

/// The worker processes of a run. They may be started beside its private Redis, for which they wait.
final class RunWorkers: Sendable {
    let supervisor: WorkerSupervisor
    private let place: Place
    private let document: InheritedDocument
    private let notes: DecodeNotes
    private let output: WorkerOutput?

    /// The address of Redis, the queue and the batch, which become known one after the other.
    private final class Place: Sendable {
        let redis = Locked<RedisConfiguration?>(nil)
        let batch = Locked<(queue: PrefetchQueue, id: String)?>(nil)
    }

    /// - Throws: `software` where the workers cannot get their settings.
    init(_ settings: RunSettings) throws(PrefetchError) {
        var content = RunWorker.Document(settings.fetch.share(of: settings.workers))
        content.tellsResult = settings.verbosity == .verbose
        document = try InheritedDocument(content.encoded)
        let notes = try DecodeNotes(workers: settings.workers)
        self.notes = notes
        let output = WorkerOutput(
            isNeeded: settings.progress == .tty || settings.progress == .json || Console.printed != nil)
        self.output = output
        let place = Place()
        self.place = place
        supervisor = WorkerSupervisor(
            WorkerSupervisor.Configuration(
                arguments: { _ in
                    var worker = RunWorker(
                        redis: place.redis.withLock { $0 }?.redactedURL ?? "", cache: settings.cache)
                    worker.queue = settings.queue
                    worker.showsSecrets = settings.showsSecrets
                    return worker.words
                }, workers: settings.workers,
                output: output?.descriptor ?? STDERR_FILENO, inherited: document.descriptor, notes: notes),
            progress: {
                guard let (queue, id) = place.batch.withLock({ $0 }) else { return 0 }
                guard let counts = (try? await queue.batches.status(of: id))??.counts else { return 0 }
                return counts.finished - counts[.poison]
            },
            onDeath: { death in
                guard let (queue, _) = place.batch.withLock({ $0 }) else { return false }
                Console.note("\(UTCTime.clock()) worker \(Self.text(death, name: Self.name(death.pid)))")
                return await LostWorker(Self.name(death.pid), queue: queue)
                    .giveBack(blaming: Self.isKilled(death, settings.fetch) ? nil : death.suspects)
            })
    }

    /// Starts them where Redis is about to be.
    func startAhead(of redis: RedisConfiguration) async {
        place.redis.withLock { $0 = redis }
        await supervisor.startAhead()
    }

    /// To be called before the supervisor runs.
    func begin(_ session: Session, _ id: String) {
        place.redis.withLock { $0 = session.redis }
        place.batch.withLock { $0 = (session.queue, id) }
        notes.set(batch: id)
    }

    /// The names under which they are registered.
    var names: Set<String> { get async { Set(await supervisor.pids.map(Self.name)) } }

    /// Ends those that are running, without waiting for their transfers, and returns when all they have printed is out.
    func end() async {
        await supervisor.kill()
        await output?.close()
    }

    /// Whether no URL is to blame for a death. The kernel kills a worker whose images have taken its memory, but those in a sandbox do not.
    private static func isKilled(_ death: WorkerSupervisor.Death, _ settings: FetchSettings) -> Bool {
        if death.isKilledHere { return true }
        guard death.end == .signalled(SIGKILL), let decoders = try? settings.decoders() else { return false }
        defer { decoders.rest() }
        return if case .holds = decoders.condition() { true } else { false }
    }

    /// The message about a death.
    static func text(_ death: WorkerSupervisor.Death, name: String) -> String {
        death.isKilledHere
            ? "\(name) was killed by this run, since it had not stopped when told to; its URLs are given back"
            : "\(name) ended by \(death.end); its URLs go to the other workers"
    }

    private static func name(_ pid: Int32) -> String { "\(ThisHost.name):\(pid)" }
}
