internal import Redis
internal import Threading
internal import WebImage

/// One URL of a claimed job, from the first check to its outcome:
///
/// 1. before its turn, without its own task: invalid? cached? on the blacklist? left to a retry? (``invalid()``, ``hit()``, ``listed(_:)``,
///    ``left()``)
/// 2. its turn: one entry of a batch leads for all that have the same URL (``run()``)
/// 3. lookup, fetch, verification and publishing are one call of the image manager (``load(_:)``)
/// 4. the result becomes an outcome, which is settled; ``ReportLoop`` reports it. A failure that may be this machine's own is settled when
///    that is known (``settle(_:)``)
struct URLRun: Sendable {
    let job: JobWork
    let position: Int
    let entry: PrefetchJob.Entry
    /// The key of what is stored. Made once: a pattern may take its time.
    private let key: String
    /// Why it has none.
    private let keyObjection: String?
    /// Whether it is on the blacklist and has lapsed.
    var hasLapsed = false

    init(_ job: JobWork, position: Int, entry: PrefetchJob.Entry) {
        self.job = job
        self.position = position
        self.entry = entry
        do throws(WebImageError) {
            key = try job.batch.images.keyRule.key(for: entry.url, entry.settings)
            keyObjection = nil
        } catch {
            (key, keyObjection) = ("", error.message)
        }
    }

    private var worker: WorkerContext { job.worker }
    private var batch: BatchContext { job.batch }

    // MARK: Before its turn

    /// The outcome if the list's reader found it invalid, or it can have no key.
    func invalid() -> SettledEntry? {
        if entry.isInvalid { return failed(.invalidURL, detail: URLLines.objection(to: entry.url)) }
        return keyObjection.map { failed(.invalidURL, detail: $0) }
    }

    /// Whether a hit needs more than its presence in the cache.
    var revalidatesHit: Bool { batch.images.headerRules != nil || entry.settings?.revalidatesHits == true }

    /// By its record alone: one file call, microseconds.
    private var isCached: Bool {
        // An unreadable cache is accessed again, and reports the error, when the image is stored.
        (try? worker.manager.cache.disk.find(forKey: key, atLeast: job.level))?.needsVerification == false
    }

    /// The outcome if it is cached. A file call, which may block.
    func hit() -> SettledEntry? {
        guard isCached else { return nil }
        return SettledEntry(position: position, outcome: .hit)
    }

    /// The outcome if it is on the blacklist. A URL listed by this very batch ends as its first entry did.
    func listed(_ listing: FailedURLEntry) -> SettledEntry? {
        guard entry.settings?.options.contains(.retryFailed) != true else { return nil }
        if !batch.policy.isCheckedBeforeCache, isCached {
            return batch.images.headerRules == nil ? SettledEntry(position: position, outcome: .hit) : nil
        }
        if batch.hasListed(listing) {
            return failed(listing.outcome ?? .blacklisted, httpStatus: listing.httpStatus, detail: listing.detail)
        }
        let reason = listing.outcome.map { "\($0.name)\(listing.httpStatus.map { " \($0)" } ?? "")" } ?? "by hand"
        return failed(.blacklisted, httpStatus: listing.httpStatus, detail: "listed: \(reason)")
    }

    /// The outcome if it is not requested any more, because a shard waits for it.
    func left() -> SettledEntry? {
        guard job.index(of: position) < batch.live.leftBefore else { return nil }
        return failed(.timeout, detail: "its host is so slow that the shards of the list waited for it")
    }

    func poison(marks: Int) -> SettledEntry {
        var item = failed(.poison, tries: marks, detail: "its bytes ended \(marks) workers")
        // As far as known, these were no requests of its own.
        item.fetch = nil
        if batch.policy != .none { item.list = entry.url }
        return item
    }

    // MARK: Its turn

    /// Runs it to its end; it stays open if the worker leaves first.
    ///
    /// Hundreds of URLs wait in it. Their variables are on the heap meanwhile, so what does not wait is in functions of its own.
    /// - Returns: its failure, if that may be this machine's: for ``settle(_:)``.
    nonisolated(nonsending) func run() async -> Doubt? {
        let identity = entry.identity
        if !batch.tryLead(identity), case .ended(let ending) = await follow(identity) {
            end(as: ending)
            return nil
        }
        return await load(identity)
    }

    private nonisolated(nonsending) func follow(_ identity: String) async -> BatchContext.Role {
        let batch = batch
        return await worker.network.failures.following { await batch.begin(identity) }
    }

    /// A failure without an outcome as yet. A class: most URLs have none.
    final class Doubt: Sendable {
        fileprivate enum Kind {
            /// It may be this machine's network.
            case network
            /// The worker's own rules refuse it.
            case rules
        }

        fileprivate let kind: Kind
        fileprivate let outcome: PrefetchOutcome
        fileprivate let error: WebImageError

        fileprivate init(_ kind: Kind, _ outcome: PrefetchOutcome, _ error: WebImageError) {
            (self.kind, self.outcome, self.error) = (kind, outcome, error)
        }
    }

    /// Waits until it is known whose failure it is; the URL holds no slot meanwhile.
    nonisolated(nonsending) func settle(_ doubt: Doubt) async {
        let (identity, error) = (entry.identity, doubt.error)
        if doubt.kind == .rules {
            let isOver = await job.refusals.ends(position) { await job.refused($0) }
            if isOver, doubt.outcome == .refused { await reportRefusal(error) }
            return end(identity, isOver ? settled(doubt.outcome, error) : nil)
        }
        let verdict = await worker.network.failures.verdict(
            on: error, of: entry.url, isListable: batch.policy.lists(error))
        switch verdict {
        case .theirs: end(identity, settled(doubt.outcome, error))
        case .unknown: end(identity, settled(doubt.outcome, error, isListed: false))
        case .ours:
            job.entry.doubt()
            end(identity, nil)
        case .open: end(identity, nil)
        }
    }

    /// Loads it, again after a fault of the disk.
    private nonisolated(nonsending) func load(_ identity: String) async -> Doubt? {
        let (worker, trial) = (worker, StoreTrial(job: job, position: position))
        let request: LoadRequest
        do throws(WebImageError) { request = try self.request() } catch {
            end(identity, settled(.invalidURL, error))
            return nil
        }
        var step = await trial.begin()
        while case .go = step, !Task.isCancelled, await worker.faults.mayStart(job.permit), worker.network.fault == nil
        {
            do throws(WebImageError) {
                let result = try await worker.manager.pipeline.load(request)
                trial.succeed(result.image.outcome)
                end(identity, result, request)
                return nil
            } catch {
                if error.code == .cancelled { break }
                if error.isNetworkFault {
                    guard !worker.shutdown.draining.isOpen else { break }
                    worker.network.fall(Connectivity.Fault(cause: .route, message: error.message, url: entry.url))
                    break
                }
                if let outcome = error.outcome { return await end(identity, outcome, error) }
                step = await trial.meet(error)
            }
        }
        if case .end(let error) = step { end(identity, settled(.notStored, error)) } else { end(identity, nil) }
        return nil
    }

    /// The batch's settings, then the line's own.
    @inline(never)
    private func request() throws(WebImageError) -> LoadRequest {
        let worker = worker
        var request = try batch.images.request(entry.url, key: key, entry.settings)
        // Rules need a size.
        request.level = request.rules == nil ? job.level : max(job.level, .header)
        request.unverifiable = batch.options.unverifiable
        request.isDurable = batch.options.durability == .file
        request.options = batch.options.options
        request.cookies = batch.cookies
        request.profile = batch.live.profile
        request.sharing = FleetFailures(worker: worker)
        request.needsPath = false
        entry.settings?.apply(to: &request)
        // An option of the batch or the line goes before the batch's priority.
        if request.options.isDisjoint(with: [.highPriority, .lowPriority]) {
            request.options.formUnion(job.priority.option)
        }
        request.permit = job.permit
        if let notes = worker.configuration.notes {
            let suspect = job.suspect(at: position)
            request.decodeNote = DecodeNote(begin: { notes.begin(suspect) }, end: { notes.end($0) })
        }
        if let suspect = job.suspect {
            // It is to blame for a death while it is marked: nothing else is being decoded then.
            request.decodesExclusively = { isAlone in
                await worker.redis.persist { queue async throws(RedisError) in
                    try await queue.jobs.mark(worker: worker.registration.name, claim: isAlone ? suspect : nil)
                }
            }
        }
        if worker.keeper.limits.maxSize != nil {
            // Checked again before storing: more URLs have started in the downloader than are in flight.
            request.willStore = { await worker.keeper.waitForRoom(orUntil: worker.shutdown.draining) }
        }
        return request
    }

    // MARK: Its outcome

    /// Ends it for all entries of its URL; nil: it stays open.
    @inline(never)
    private func end(_ identity: String, _ item: SettledEntry?) {
        batch.end(identity, item.map { BatchContext.Ending(outcome: $0.outcome, failure: $0.failure) })
        if let item { job.entry.settle([item]) } else { job.entry.leave() }
    }

    /// Ends as the first entry of its URL has.
    @inline(never)
    private func end(as ending: BatchContext.Ending) {
        var item = SettledEntry(position: position, outcome: ending.outcome)
        item.failure = ending.failure
        item.failure?.line = entry.line
        job.entry.settle([item])
    }

    @inline(never)
    private func end(_ identity: String, _ result: LoadResult, _ request: LoadRequest) {
        let image = result.image
        if image.outcome != .hit, image.tries > 0 {
            worker.network.didSucceed(entry.url, rate: batch.live.ratePerHost)
        }
        var item = SettledEntry(position: position, outcome: image.outcome)
        if image.outcome == .downloaded { item.bytes = image.byteCount }
        if image.tries > 0 {
            item.fetch = FetchTally.Fetch(format: image.info.format, timing: image.timing, tries: image.tries)
        }
        // The original takes a URL off its list when it was downloaded; a cached one stays on it.
        let isRetried =
            request.options.contains(.retryFailed)
            && (!batch.policy.isCheckedBeforeCache || image.outcome == .downloaded)
        if isRetried || hasLapsed { item.unlist = entry.url }
        end(identity, item)
    }

    @inline(never)
    private nonisolated(nonsending) func end(
        _ identity: String, _ outcome: PrefetchOutcome, _ error: WebImageError
    ) async -> Doubt? {
        if error.httpStatus != nil, !error.mayBeLocal { worker.network.didHear() }
        if error.mayBeLocal, !job.isBelieved { return Doubt(.network, outcome, error) }
        if job.hasOthers, worker.registration.rules.refuse(error) {
            return Doubt(.rules, outcome, error)
        }
        if outcome == .refused { await reportRefusal(error) }
        end(identity, settled(outcome, error, isListed: !error.mayBeLocal))
        return nil
    }

    private func settled(
        _ outcome: PrefetchOutcome, _ error: WebImageError, isListed: Bool = true
    ) -> SettledEntry {
        var item = failed(
            outcome, reason: error.reason, httpStatus: error.httpStatus, tries: error.tries,
            detail: error.message)
        if let saved = error.savedBytes {
            item.fetch = FetchTally.Fetch(format: nil, timing: nil, tries: error.tries, savedBytes: saved)
        }
        if outcome == .unsupported { item.fetch?.format = error.unverifiedFormat }
        if isListed, batch.policy.lists(error) { item.list = entry.url }
        return item
    }

    @inline(never)
    private func failed(
        _ outcome: PrefetchOutcome, reason: FailureReason? = nil, httpStatus: Int? = nil, tries: Int = 0,
        detail: String
    ) -> SettledEntry {
        var item = SettledEntry(position: position, outcome: outcome)
        item.failure = FailureDetail(
            line: entry.line, url: entry.url, outcome: outcome, reason: reason, httpStatus: httpStatus,
            tries: tries, detail: detail, settings: entry.settings)
        // A URL that a policy or a filter refuses was not requested; of one whose image is not taken see `settled`.
        if tries > 0 && outcome != .refused && outcome != .filtered {
            item.fetch = FetchTally.Fetch(format: nil, timing: nil, tries: tries)
        }
        return item
    }

    /// Reports once per batch that the address policy refuses a host.
    private nonisolated(nonsending) func reportRefusal(_ error: WebImageError) async {
        guard let host = error.refusedAddress, batch.isFirstRefusal(of: host) else { return }
        worker.configuration.onEvent(.refused(host: host, message: error.message))
        let id = batch.batch.id
        await worker.redis.persist { queue async throws(RedisError) in
            try await queue.reports.noteRefusal(batch: id, host: host, message: error.message)
        }
    }
}

extension URLSettings {
    func apply(to request: inout LoadRequest) {
        request.options.formUnion(options)
        request.headers = headers
        request.mirrors = mirrors
        request.expectedDigest = sha256.flatMap { Digest(hex: $0) }
    }
}
