internal import Redis
internal import Threading
internal import WebImage

/// Decides whose the failures are that ``UndecidedFailures`` holds, and whether this worker's network is out of order: asks Redis which images
/// other workers have fetched in the last minute (the witnesses), and requests the first bytes of some of them, small and rarely.
///
/// - A witness answers: the failures are the list's.
/// - None does: the network here is out of order. The worker pauses, gives its jobs back, and probes until one answers.
/// - Nobody knows of any, or the worker is alone: the failures are reported when nothing else is left, and are not put on the blacklist.
///
/// Confined to the worker's executor.
final class WitnessLoop {
    /// How long others may take to have a success, before nobody knows.
    private static let answerTime = Duration.seconds(2)
    private static let longestPause = Duration.seconds(30)
    /// How long failures wait at most, where nothing but witnesses answers.
    private static let longestTrust = Duration.seconds(4)
    /// The most witnesses that are requested at once, each of another host.
    private static let most = 3

    /// The last URLs of a list, if they are fewer, are not asked about a moment after a success: a network that fails takes more with it.
    private static let few = 8

    private let worker: WorkerContext
    private let claims: ClaimLoop
    private let probe: WitnessProbe
    private var toldAt: ContinuousClock.Instant?
    private var nextQuestion = ContinuousClock.now
    /// When the next probe may start, and the pause after it.
    private var nextProbe = ContinuousClock.now
    private var pause = Duration.seconds(1)
    /// Since when nobody knows, although somebody was asked.
    private var ignorantSince: ContinuousClock.Instant?
    /// How often the claim loop had found no room when nothing was in progress any more.
    private var checksWhenIdle: Int?
    private var faultSince: ContinuousClock.Instant?
    /// Since when there have been transfers, or names that were asked for.
    private var busySince: ContinuousClock.Instant?

    init(_ worker: WorkerContext, claims: ClaimLoop) {
        self.worker = worker
        self.claims = claims
        probe = WitnessProbe(worker.manager.downloader)
    }

    private var network: Connectivity { worker.network }

    nonisolated(nonsending) func run() async {
        while !Task.isCancelled {
            let interval: Duration =
                network.fault != nil
                ? .milliseconds(200)
                : network.failures.count > 0 ? .milliseconds(50) : .seconds(1)
            await network.bell.wait(atMost: interval)
            await noteActivity()
            await tell()
            if let fault = network.fault {
                if faultSince == nil {
                    faultSince = .now
                    (nextProbe, pause) = (.now + .seconds(1), .seconds(1))
                }
                await recover(from: fault)
            } else {
                faultSince = nil
                await judge()
            }
        }
    }

    /// What waits for its host's turn says nothing of the network.
    private nonisolated(nonsending) func noteActivity() async {
        let activity = await worker.manager.downloader.activity
        let isAsking = activity.running + activity.stalled + activity.waitingForName > 0
        busySince = isAsking ? busySince ?? .now : nil
    }

    // MARK: Redis

    /// Tells the others of images fetched here: at once, then every second.
    private nonisolated(nonsending) func tell() async {
        if let toldAt, .now - toldAt < .seconds(1) { return }
        let own = network.takeWitnesses()
        guard !own.isEmpty else { return }
        toldAt = .now
        _ = await ask(adding: own)
    }

    private nonisolated(nonsending) func ask(
        adding own: [QueueHosts.Witness] = []
    ) async -> (workers: Int, witnesses: [QueueHosts.Witness])? {
        var origins: Set<ByteText> = []
        let own = own.filter { origins.insert(UndecidedFailures.origin(of: $0.url)).inserted }
        return await worker.redis.persist { queue async throws(RedisError) in
            try await queue.hosts.witnesses(adding: own)
        }
    }

    // MARK: Whose failures

    private nonisolated(nonsending) func judge() async {
        let asked = ContinuousClock.now
        let oldest = network.failures.oldest
        let isLeft = oldest != nil && isNothingElseLeft
        if isLeft, let oldest, network.failures.count < Self.few, let last = network.lastSuccess,
            oldest - last < Connectivity.proof
        {
            return network.failures.settle(before: asked, as: .theirs)
        }
        let isOld = oldest.map { asked - $0 > .seconds(1) } ?? false
        guard isLeft || isOld || isStalled(asked), asked >= nextQuestion else { return }
        nextQuestion = asked + .milliseconds(500)
        let evidence = network.failures.evidence()
        guard let answer = await ask(adding: network.takeWitnesses()) else { return }
        guard answer.workers > 1 else {
            ignorantSince = nil
            if isLeft, let evidence {
                nextQuestion = asked
                await reportAlone(evidence, answer.witnesses, asked)
            }
            return
        }
        let witnesses = usable(answer.witnesses, against: evidence, asked)
        let known = Self.ofDistinctHosts(witnesses + answer.witnesses)
        guard asked >= nextProbe || known.isEmpty else { return }
        let finding = await probe.ask(any: known)
        if finding == .fault { return }
        if finding == .answer {
            ignorantSince = nil
            // While it has no success of its own it goes on asking, ever more rarely.
            let hasProgress = network.lastSuccess.map { $0 > nextProbe } ?? false
            pause = hasProgress ? .seconds(1) : min(pause * 2, Self.longestTrust)
            nextProbe = .now + pause
            network.didHear()
            network.failures.settle(before: asked, as: .theirs)
        } else if finding == .silence, let witness = witnesses.first {
            ignorantSince = nil
            guard !worker.shutdown.draining.isOpen, !(network.lastSuccess.map { $0 > asked } ?? false) else { return }
            network.fall(
                Connectivity.Fault(cause: .witnesses, message: Self.message(evidence, witness), url: witness.url))
        } else if isLeft, let evidence {
            if let since = ignorantSince, let last = network.lastSuccess, last > since { ignorantSince = nil }
            let since = ignorantSince ?? asked
            ignorantSince = since
            if asked - since >= Self.answerTime { reportUnknown(evidence, asked) }
        }
    }

    /// Alone, nothing is held against the machine. What would be listed is worth a request to a host that answered a moment ago.
    private nonisolated(nonsending) func reportAlone(
        _ evidence: UndecidedFailures.Evidence, _ witnesses: [QueueHosts.Witness], _ asked: ContinuousClock.Instant
    ) async {
        let others = witnesses.filter { !evidence.origins.contains(UndecidedFailures.origin(of: $0.url)) }
        let known = Self.ofDistinctHosts(others.isEmpty ? witnesses : others)
        switch evidence.isListable ? await probe.ask(any: known) : .nothing {
        case .answer: network.failures.settle(before: asked, as: .theirs)
        case .silence, .nothing: reportUnknown(evidence, asked)
        case .fault: nextQuestion = asked + .milliseconds(500)
        }
    }

    private func reportUnknown(_ evidence: UndecidedFailures.Evidence, _ asked: ContinuousClock.Instant) {
        if let portal = evidence.portal { worker.warningLog.say(Self.ofPortal(portal)) }
        network.failures.settle(before: asked, as: .unknown)
    }

    /// Whether all its URLs have failed or wait for one that has, and no other can be claimed.
    private var isNothingElseLeft: Bool {
        let (jobs, failures, slots) = (worker.jobs, network.failures, worker.slots)
        let isIdle =
            jobs.openCount - failures.count - failures.followers <= 0
            || slots.waiting > 0 && slots.used <= failures.followers
        guard isIdle else {
            checksWhenIdle = nil
            return false
        }
        if claims.lacksWork || worker.shutdown.draining.isOpen { return true }
        guard let checks = checksWhenIdle else {
            checksWhenIdle = claims.checks
            jobs.room.ring()
            return false
        }
        return claims.checks > checks
    }

    /// Whether it has asked for URLs or names for a lease, and none was fetched.
    private func isStalled(_ now: ContinuousClock.Instant) -> Bool {
        now - progress(now) >= .milliseconds(worker.configuration.lease)
    }

    /// The last success since then.
    private func progress(_ now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        busySince.map { max($0, network.lastSuccess ?? $0, network.lastAnswer ?? $0) } ?? now
    }

    /// Witnesses whose silence says something of this machine: of a host at which nothing failed here, or that somebody fetched from since then, or
    /// of any if there are failures at several hosts. The only host of a list may have died for all workers.
    private func usable(
        _ witnesses: [QueueHosts.Witness], against evidence: UndecidedFailures.Evidence?, _ now: ContinuousClock.Instant
    ) -> [QueueHosts.Witness] {
        let age = Int((now - (evidence?.oldest ?? progress(now))) / .milliseconds(1))
        let failing = evidence?.origins ?? []
        guard evidence?.isOfManyHosts != true else { return witnesses }
        return witnesses.filter { witness in
            witness.age < age || evidence != nil && !failing.contains(UndecidedFailures.origin(of: witness.url))
        }
    }

    private static func ofDistinctHosts(_ witnesses: [QueueHosts.Witness]) -> [QueueHosts.Witness] {
        var origins: Set<ByteText> = []
        // Not lazily: its closure would be called more than once.
        return Array(witnesses.filter { origins.insert(UndecidedFailures.origin(of: $0.url)).inserted }.prefix(most))
    }

    // MARK: Out of order

    /// A resolver that answered nothing for a lease, while others have theirs.
    /// * `silence`: seconds since its last answer; nil: it answers.
    func heed(silence: Double?) {
        guard let silence else {
            if network.fault?.cause == .resolver { network.mend() }
            return
        }
        guard worker.registration.settings.workers > 1, silence * 1000 >= Double(worker.configuration.lease),
            network.fault == nil, let url = urlOfAName
        else { return }
        network.fall(
            Connectivity.Fault(
                cause: .resolver,
                message:
                    "the resolver answers nothing, so the jobs went back to the queue; check /etc/resolv.conf, or name "
                    + "others: --dns-servers ADDRESS", url: url))
    }

    /// An open URL whose host is a name.
    private var urlOfAName: String? {
        for run in worker.jobs.openRuns() {
            for position in run.outcomes.indices where run.outcomes[position] == 0 {
                let url = run.claim.job.entries[position].url
                if let request = try? RequestURL(url), request.literalAddress == nil { return url }
            }
        }
        return nil
    }

    /// Gives back what the worker still has, and probes at growing intervals.
    private nonisolated(nonsending) func recover(from fault: Connectivity.Fault) async {
        guard !worker.shutdown.draining.isOpen else { return }
        if worker.jobs.revokePermits(nil) { await worker.endRevoked() }
        guard ContinuousClock.now >= nextProbe else { return }
        if await isOver(fault) {
            network.mend()
            ignorantSince = nil
            worker.jobs.room.ring()
        }
        pause = min(pause * 2, Self.longestPause)
        nextProbe = .now + pause
    }

    private nonisolated(nonsending) func isOver(_ fault: Connectivity.Fault) async -> Bool {
        // What was in transfer as it began may end well a moment later.
        if fault.cause != .resolver, let faultSince, let last = network.lastSuccess, last > faultSince + .seconds(1) {
            return true
        }
        switch fault.cause {
        case .route: return await probe.ask(QueueHosts.Witness(url: fault.url)) != .fault
        case .resolver: return await probe.ask(QueueHosts.Witness(url: fault.url)) == .answered
        case .witnesses:
            guard let answer = await ask() else { return false }
            switch await probe.ask(any: Self.ofDistinctHosts(answer.witnesses)) {
            case .answer:
                network.didHear()
                return true
            // Nobody knows any more: the host may have died for all.
            case .nothing: return true
            case .silence, .fault: return false
            }
        }
    }

    private static func message(_ evidence: UndecidedFailures.Evidence?, _ witness: QueueHosts.Witness) -> String {
        if let portal = evidence?.portal { return ofPortal(portal) }
        let origin = UndecidedFailures.origin(of: witness.url).text
        return
            "no network: other workers reach \(origin) and this one does not, so its jobs went back to the queue; check this "
            + "machine's network, firewall and --proxy"
    }

    private static func ofPortal(_ text: String) -> String {
        "a portal answers for every host (\(text)); log in to this machine's network, or name a proxy: --proxy URL"
    }
}
