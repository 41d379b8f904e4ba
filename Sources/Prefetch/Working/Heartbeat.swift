internal import Redis
internal import Threading
internal import WebImage

/// Sends a worker's heartbeats, from its own thread that uses neither files nor the downloader, over its own connection: a disk that stalls
/// for a while costs the worker neither its registration nor its jobs.
///
/// A disk that stalls for more than three leases delays URLs that others could fetch. Then the jobs go back to their lists without counting
/// a delivery, nothing is claimed, and the worker reports `held: disk` until a probe has been written. A file call that returns late
/// publishes a whole file or none, and an outcome that is reported late counts only if it is the first.
///
/// No heartbeat is sent while the downloader's thread or the worker itself hangs for another reason than the disk: its jobs are reaped.
actor Heartbeat {
    struct Statement: Sendable {
        var worker: String
        var batches: [BatchIdentity]
        /// The known claims, and the number of the last one: Redis compares them only if there was no later claim.
        var claims: QueueWorkers.KnownClaims
        var about: [(String, String)]
    }

    enum News: Sendable {
        /// Redis took the heartbeat of this statement.
        case answered(Statement, QueueWorkers.WorkerSettings)
        /// The worker is no longer registered under this name.
        case lost(String)
        case failed(RedisError)
        /// The disk does not respond: nothing new may start. Sent with each heartbeat while that lasts.
        case held
        case goesOn
    }

    struct Watched: Sendable {
        var calls: FileCalls
        /// Returns when the disk has taken a write; blocks.
        var probe: @Sendable () -> Void
        /// How long the downloader's thread has not run its loop.
        var silence: @Sendable () -> Duration
        /// Stops or resumes the heartbeats by which the worker's transfers keep other processes waiting.
        var setHeartbeatsPaused: @Sendable (Bool) -> Void
    }

    /// Closed while the disk does not respond.
    nonisolated let hold: FaultGate
    /// Rings for new events in ``takeNews()``.
    nonisolated let bell = WakeSignal()
    private nonisolated let executor: ThreadExecutor
    private nonisolated let news = Locked<[News]>([])
    private let queue: PrefetchQueue
    private let jobs: JobLedger
    private let watched: Watched
    private let lease: Duration
    private let interval: Duration, idleInterval: Duration
    private let probe = DiskProbe()

    private var statement: Statement?
    private var statedAt = ContinuousClock.now
    private var due = ContinuousClock.now
    private var isBeating = false
    private var isOver = false
    private var isSlow = false
    private var failures = 0
    private var heldSince: ContinuousClock.Instant?
    private var hasReportedHold = false

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Starts the thread, which waits for the first statement. It ends with the last reference.
    /// * `queue`: over a separate connection.
    /// * `lease`: milliseconds.
    /// * `hold`: closed while the disk does not respond.
    init(queue: PrefetchQueue, jobs: JobLedger, lease: Int, hold: FaultGate, watched: Watched) {
        self.queue = queue
        self.jobs = jobs
        self.watched = watched
        self.hold = hold
        self.lease = .milliseconds(lease)
        interval = Self.interval(lease: lease)
        idleInterval = Self.interval(lease: lease, isIdle: true)
        let alarm = ThreadAlarm()
        let reference = WeakReference<Heartbeat>()
        executor = ThreadExecutor(
            name: "heartbeat", wake: { alarm.wake() },
            turn: { maySleep in
                let sleep = reference.object?.assumeIsolated { $0.turn() } ?? .zero
                if maySleep { alarm.sleep(atMost: sleep) }
            })
        reference.set(self)
    }

    deinit { executor.stop() }

    /// Every second, or every third of a shorter lease; always a third of the lease for a worker without a job: its figures are of no
    /// interest, and new settings can wait until it claims again.
    static func interval(lease: Int, isIdle: Bool = false) -> Duration {
        isIdle ? .milliseconds(lease / 3) : min(.milliseconds(lease / 3), .seconds(1))
    }

    /// Takes and sends a new statement. Returns at once.
    nonisolated func tell(_ statement: Statement) {
        executor.perform { self.assumeIsolated { $0.take(statement) } }
    }

    nonisolated func takeNews() -> [News] {
        news.withLock { news in
            defer { news = [] }
            return news
        }
    }

    func end() async {
        isOver = true
        statement = nil
        await queue.connection.close()
    }

    private func take(_ statement: Statement) {
        guard !isOver else { return }
        self.statement = statement
        statedAt = .now
        if !isBeating && failures == 0 { due = statedAt }
    }

    /// One turn of the thread; returns how long it may sleep.
    private func turn() -> Duration {
        guard statement != nil, !isBeating else { return .seconds(60) }
        let now = ContinuousClock.now
        guard now >= due else { return due - now }
        isBeating = true
        Task { await beat() }
        return .zero
    }

    private func beat() async {
        defer { isBeating = false }
        guard let statement, !isOver else { return }
        let began = ContinuousClock.now
        // Normally a new statement comes before that; otherwise the last one is sent again.
        let interval = statement.claims.names.isEmpty ? idleInterval : interval
        due = began + interval + min(interval, Duration.milliseconds(500))
        await checkDisk(statement.worker, now: began)
        let isHanging = isHanging(now: began)
        watched.setHeartbeatsPaused(isHanging || heldSince != nil)
        guard !isHanging else {
            due = began + min(interval, Duration.milliseconds(200))
            return
        }
        do throws(RedisError) {
            let settings = try await queue.workers.beat(
                worker: statement.worker, lease: Int(lease / .milliseconds(1)), trouble: isSlow,
                batches: statement.batches, claims: statement.claims, about: statement.about + aboutHold(now: began))
            isSlow = ContinuousClock.now - began > lease / 3
            failures = 0
            if let settings {
                post(.answered(statement, settings))
            } else {
                // It registers under another name, and continues with that.
                if self.statement?.worker == statement.worker { self.statement = nil }
                post(.lost(statement.worker))
            }
        } catch {
            failures += 1
            // A cut connection recovers at once.
            due = ContinuousClock.now + min(interval, Duration.milliseconds(50) * failures)
            post(.failed(error))
        }
    }

    /// Whether the worker or its downloader hangs, and not because of the disk.
    private func isHanging(now: ContinuousClock.Instant) -> Bool {
        if watched.silence() > lease / 3 { return true }
        return now - statedAt > lease && heldSince == nil && watched.calls.oldest < lease / 3
    }

    private func aboutHold(now: ContinuousClock.Instant) -> [(String, String)] {
        guard let heldSince else {
            defer { hasReportedHold = false }
            return hasReportedHold ? [(WorkerHold.reasonField, "")] : []
        }
        hasReportedHold = true
        return [
            (WorkerHold.reasonField, WorkerHold.disk),
            (WorkerHold.durationField, String(Int((now - heldSince) / .milliseconds(1)))),
            ("trouble", hold.message ?? ""),
        ]
    }

    private func post(_ item: News) {
        news.withLock { $0.append(item) }
        bell.ring()
    }

    // MARK: The disk

    private func checkDisk(_ worker: String, now: ContinuousClock.Instant) async {
        let oldest = watched.calls.oldest
        if heldSince == nil {
            guard oldest > lease * 3 else { return }
            heldSince = now - oldest
            probe.forget()
            hold.close(WorkerHold.text, by: .hold)
        } else if probe.hasAnswered {
            if oldest < lease {
                heldSince = nil
                hold.reopen(.hold)
                return post(.goesOn)
            }
            probe.forget()
        }
        probe.start(watched.probe)
        post(.held)
        // Including jobs whose claim was in transit when the hold began.
        let kept = jobs.kept(by: worker)
        guard !kept.isEmpty else { return }
        do throws(RedisError) {
            try await queue.jobs.release(worker: worker, jobs: kept.map(\.claim.name), leaving: false)
            for job in kept { jobs.didReturn(job.id) }
        } catch {
            // Retried with the next heartbeat, otherwise the lease expires.
        }
    }
}
