internal import Redis
internal import Threading
internal import WebImage

/// Passes statements to the heartbeat at its intervals, and handles its events.
///
/// Confined to the worker's executor, unlike ``Heartbeat``, which continues if that hangs.
final class HeartbeatLoop {
    private let worker: WorkerContext
    private let heartbeat: Heartbeat
    private let room: CapacityLoop
    private let concurrency: ConcurrencyLoop
    private let hosts: HostLoop
    private let reports: ReportLoop
    private let reaper: ReapLoop
    private let claims: ClaimLoop
    private let witnesses: WitnessLoop
    private let gauge: WorkerGauge
    private var meter = LimitMeter()
    private let began = ContinuousClock.now
    /// Rings with each claim that returned jobs.
    private let hasClaimed: WakeSignal
    private var isHeld = false
    /// Since when the resolver is silent, in seconds since 1970; nil while it answers.
    private var silentSince: Int?
    /// Failed URLs removed because of the list's limit, as of the last heartbeat.
    private var unlisted: Int?

    init(
        _ worker: WorkerContext, heartbeat: Heartbeat, room: CapacityLoop, concurrency: ConcurrencyLoop,
        hosts: HostLoop, reports: ReportLoop, reaper: ReapLoop, claims: ClaimLoop, witnesses: WitnessLoop,
        hasClaimed: WakeSignal
    ) {
        self.worker = worker
        self.heartbeat = heartbeat
        self.room = room
        self.concurrency = concurrency
        self.hosts = hosts
        self.reports = reports
        self.reaper = reaper
        self.claims = claims
        self.witnesses = witnesses
        gauge = WorkerGauge(worker)
        self.hasClaimed = hasClaimed
    }

    nonisolated(nonsending) func run() async {
        let lease = worker.configuration.lease
        let interval = Heartbeat.interval(lease: lease)
        let idleInterval = Heartbeat.interval(lease: lease, isIdle: true)
        var (isFirst, hasSaidIdle) = (true, false)
        while !Task.isCancelled {
            // The first one at once: it returns the worker's settings.
            if !isFirst {
                do { try await Task.sleep(for: interval) } catch { return }
                // The first statement without jobs is sent at once.
                if worker.jobs.batches.isEmpty, hasSaidIdle, !worker.registration.settings.isWorkerPaused {
                    await hasClaimed.wait(atMost: idleInterval - interval)
                }
            }
            isFirst = false
            if let statement = await statement() {
                hasSaidIdle = statement.claims.names.isEmpty
                heartbeat.tell(statement)
            }
            await heartbeat.bell.wait(atMost: interval)
            for news in heartbeat.takeNews() { await heed(news) }
        }
    }

    private nonisolated(nonsending) func statement() async -> Heartbeat.Statement? {
        let activity = await worker.manager.downloader.activity
        let oldest = await OpenURLNote.oldest(of: worker)
        let (figures, span) = await gauge.read(activity)
        let (registration, jobs) = (worker.registration, worker.jobs)
        guard !registration.isJoining else { return nil }
        var report = WorkerReport()
        (report.inFlight, report.stalled) = (activity.running + activity.stalled, activity.stalled)
        // Started, but neither being transferred nor waiting for it.
        report.checking = max(0, min(worker.slots.used, jobs.openCount) - activity.operations)
        (report.retrying, report.waitingForHost) = (activity.retrying, activity.waitingForHost)
        report.unreported = jobs.unreportedCount
        (report.maxConcurrentDownloads, report.concurrencyReason) = (room.concurrency, concurrency.reason)
        report.trouble = worker.faults.trouble ?? worker.network.gate.message ?? ""
        report.warning = worker.warningLog.current ?? ""
        (report.oldest, report.cache) = (oldest, reports.cache.id)
        report.sandbox = CodecSandbox.text(of: worker.manager.coder.sandbox)
        // As far as known without a call to its disk, which may hang.
        if let known = worker.manager.cache.disk.account.totals {
            (report.cacheImages, report.cacheBytes) = (known.count, known.size)
            report.cacheLimit = worker.keeper.limits.maxSize
        }
        report.names = NameReport(activity.names)
        tellSilence(activity.names)
        witnesses.heed(silence: activity.names.silence)
        report.residentBytes = ProcessUsage.residentBytes
        report.cpu = ProcessUsage.milliseconds(with: worker.manager)
        report.figures = figures
        (report.figures.lacksWork, report.figures.isRefused) = (claims.lacksWork, reports.hasRefused)
        report.limit = limit(of: report, over: span, isIdle: jobs.openCount == 0)
        report.figures = meter.shownFigures
        let name = registration.name
        return Heartbeat.Statement(
            worker: name, batches: Array(jobs.batches),
            claims: QueueWorkers.KnownClaims(sequence: registration.sequence, names: jobs.names(of: name)),
            about: report.fields)
    }

    /// A silent resolver is the machine's fault: URLs of unknown names wait for it, others go on.
    private func tellSilence(_ names: NameFigures) {
        guard let silence = names.silence else {
            silentSince = nil
            return
        }
        // Its start, so that the text stays the same and is said once.
        let since = silentSince ?? Int(WallClock.now - silence)
        silentSince = since
        worker.warningLog.say(
            "the resolver has answered nothing since \(Self.clock(since)) UTC; URLs whose host's address is not known yet wait; "
                + "check /etc/resolv.conf, or name others: --dns-servers ADDRESS")
    }

    /// The time of day: `12:41:07`.
    private static func clock(_ seconds: Int) -> String {
        [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60].map { ($0 < 10 ? "0" : "") + String($0) }
            .joined(separator: ":")
    }

    /// What holds the worker back, told from its report and from the settings, which Redis writes into its record.
    private func limit(of report: WorkerReport, over span: Duration, isIdle: Bool) -> LimitCause {
        let settings = worker.registration.settings
        var report = report
        report.isPaused = settings.isWorkerPaused || settings.isQueuePaused
        let age = Int((ContinuousClock.now - began) / .milliseconds(1))
        let cause = LimitCause.of(report, peers: settings.workers, age: age)
        let shown = meter.take(cause, for: span, report.figures, isIdle: isIdle)
        reports.count(shown, milliseconds: Int(span / .milliseconds(1)))
        return shown
    }

    private nonisolated(nonsending) func heed(_ news: Heartbeat.News) async {
        let onEvent = worker.configuration.onEvent
        switch news {
        case .answered(let statement, let settings):
            worker.redis.answers()
            for (batch, setting) in zip(statement.batches, settings.batches)
            where setting.state != BatchStatus.State.running.rawValue
                && setting.state != BatchStatus.State.done.rawValue
            {
                worker.batches.end(batch)
            }
            await apply(settings, to: statement.batches)
            warnOfUnlisted(settings.unlisted ?? 0)
            await reports.tellHosts()
            await hosts.learn(settings.hostsVersion)
            claims.heed(above: settings.above)
            if settings.shouldReap { reaper.bell.ring() }
        case .lost(let name): await worker.registration.rejoin(after: name)
        case .failed(let error):
            if error.code == .reply {
                worker.redis.note(error)
            } else if error.code != .interrupted {
                worker.redis.fails(error)
            }
        case .held:
            if !isHeld { onEvent(.held(true)) }
            isHeld = true
            _ = worker.jobs.revokePermits(nil)
            await worker.endRevoked()
        case .goesOn:
            if isHeld { onEvent(.held(false)) }
            isHeld = false
        }
    }

    /// Applies the settings of a heartbeat: transfers in flight, pauses, what `set` has changed of batches.
    ///
    /// URLs of a paused or changed batch that have started end and count. Others go back to the batch's list at once, without counting a delivery.
    /// * `batches`: those of the request.
    private nonisolated(nonsending) func apply(
        _ settings: QueueWorkers.WorkerSettings, to batches: [BatchIdentity]
    ) async {
        let wasPaused = worker.registration.settings.isWorkerPaused
        worker.registration.take(settings)
        await room.setConcurrency(settings.ownConcurrency ?? settings.queueConcurrency)
        if settings.isWorkerPaused != wasPaused {
            worker.configuration.onEvent(.pausedByCommand(settings.isWorkerPaused))
            // It may claim again, or its wait is the longer one now.
            worker.jobs.room.ring()
        }
        var returned: Set<BatchIdentity> = []
        for (batch, setting) in zip(batches, settings.batches) {
            // What waits for its host waits by the settings it had then.
            if await worker.batches.refresh(batch, changes: setting.changes) || setting.isPaused {
                returned.insert(batch)
            }
        }
        let revokesAll = settings.isWorkerPaused || settings.isQueuePaused
        guard revokesAll || !returned.isEmpty, worker.jobs.revokePermits(revokesAll ? nil : returned) else { return }
        await worker.endRevoked()
    }

    /// Warns once that failed URLs are removed because of the list's limit; removals before this worker started do not count.
    private func warnOfUnlisted(_ count: Int) {
        if let unlisted, count > unlisted {
            worker.warningLog.say(
                "the blacklist has reached its limit, so its oldest entries are removed; lists that have these URLs request "
                    + "them again")
        }
        unlisted = count
    }
}
