internal import Glibc
internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Runs one job: hits at once, listed URLs at once, the rest by the network, until all have ended or the worker leaves.
    nonisolated func runJob(_ id: Int, _ claim: PrefetchQueue.Claim) async {
        guard let context = await context(of: claim.batch) else { return jobs.end(id) }
        if claim.deliveries >= 3 && claim.job.entries.count > 1 {
            await split(claim)
            return jobs.forget(id)
        }
        if claim.marks >= 3 {
            jobs.settle(id, [poison(claim, context.policy)])
            return jobs.end(id)
        }
        await withTaskGroup(of: Bool.self) { race in
            race.addTask {
                await self.runURLs(id, claim, context)
                return true
            }
            race.addTask {
                await context.over.wait()
                return false
            }
            let end = goesOn(claim, context) ? stopping : drained
            race.addTask {
                await end.wait()
                return false
            }
            _ = await race.next()
            race.cancelAll()
        }
        jobs.end(id)
    }

    /// Whether what has begun of a job goes on past the drain timeout.
    private nonisolated func goesOn(_ claim: PrefetchQueue.Claim, _ context: BatchContext) -> Bool {
        context.loadOptions.contains(.continueInBackground)
            || claim.job.entries.contains { $0.settings?.options.contains(.continueInBackground) == true }
    }

    private nonisolated func runURLs(_ id: Int, _ claim: PrefetchQueue.Claim, _ context: BatchContext) async {
        var open = Array(zip(claim.job.entries.indices, claim.job.entries)).filter { claim.outcomes[$0.0] == 0 }
        var settled: [PrefetchQueue.Settled] = []
        open.removeAll { position, entry in
            guard entry.isInvalid else { return false }
            settled.append(failed(position, entry, .invalidURL, detail: Self.invalidity(of: entry.url)))
            return true
        }
        let level = max(context.options.level, configuration.minimumLevel)
        if context.policy.asksBeforeCache { await takeOutListed(&open, &settled, context, level) }
        takeOutCached(&open, &settled, context, level)
        if !context.policy.asksBeforeCache && context.policy != .none {
            await takeOutListed(&open, &settled, context, level)
        }
        if !settled.isEmpty { jobs.settle(id, settled) }
        let isSuspect = claim.deliveries >= 3
        let permit = jobs.permit(of: id)
        await withDiscardingTaskGroup { group in
            var granted = 0
            for (number, (position, entry)) in open.enumerated() {
                if granted == 0 {
                    granted = min(slots.step, open.count - number)
                    guard await slots.acquire(granted, permit: permit) else {
                        jobs.leave(id, count: open.count - number)
                        break
                    }
                    jobs.begin(id, through: open[number + granted - 1].0)
                }
                granted -= 1
                group.addTask {
                    await self.runURL(
                        id, position, entry, context, suspect: isSuspect ? claim.name : nil, permit: permit)
                    self.slots.release()
                }
            }
        }
    }

    /// Ends the URLs that the cache has. On the thread pool, so the file calls may block; a hit costs microseconds and needs no task
    /// of its own. Where none of the first is there, the others are only looked for when it is their turn, which is needed anyway.
    private nonisolated func takeOutCached(
        _ open: inout [(Int, PrefetchJob.Entry)], _ settled: inout [PrefetchQueue.Settled], _ context: BatchContext,
        _ level: ValidationLevel
    ) {
        // These are asked about one by one.
        guard !context.loadOptions.questionsHits else { return }
        var looked = 0
        var hits = 0
        open.removeAll { position, entry in
            guard looked < 16 || hits > 0 else { return false }
            guard entry.settings?.questionsHits != true else { return false }
            looked += 1
            guard manager.hasCached(key: context.keyRule.key(for: entry.url), atLeast: level) else { return false }
            hits += 1
            settled.append(PrefetchQueue.Settled(position: position, outcome: .hit))
            return true
        }
    }

    /// Ends the URLs that are on the blacklist. One that this very batch listed ends as its first entry did.
    private nonisolated func takeOutListed(
        _ open: inout [(Int, PrefetchJob.Entry)], _ settled: inout [PrefetchQueue.Settled], _ context: BatchContext,
        _ level: ValidationLevel
    ) async {
        guard !context.options.retryFailed, !open.isEmpty else { return }
        let urls = open.map(\.1.url)
        let timeToLive = context.policy.lapses ? context.options.blacklistTTL : 0
        guard let listed = await askListed(urls, timeToLive: timeToLive) else { return }
        var rest: [(Int, PrefetchJob.Entry)] = []
        for (index, (position, entry)) in open.enumerated() {
            guard let listing = listed[index], entry.settings?.options.contains(.retryFailed) != true else {
                rest.append((position, entry))
                continue
            }
            let key = context.keyRule.key(for: entry.url)
            if !context.policy.asksBeforeCache, manager.hasCached(key: key, atLeast: level) {
                settled.append(PrefetchQueue.Settled(position: position, outcome: .hit))
                continue
            }
            let isOwn = context.hasListed(listing)
            let reason = listing.outcome.map { "\($0.name)\(listing.httpStatus.map { " \($0)" } ?? "")" } ?? "by hand"
            settled.append(
                failed(
                    position, entry, isOwn ? listing.outcome ?? .blacklisted : .blacklisted,
                    httpStatus: listing.httpStatus,
                    detail: isOwn ? listing.detail : "listed: \(reason)"))
        }
        open = rest
    }

    /// Why a line is no URL.
    static func invalidity(of line: String) -> String {
        "the line is no URL" + (line.contains("://") ? "" : ": it begins with neither http:// nor https://")
    }

    private func askListed(_ urls: [String], timeToLive: Double) async -> [Int: FailedURLEntry]? {
        // Refused for a reason that is none of the known ones, it is asked again; where the list itself is broken nothing is on it.
        for _ in 0..<3 where !draining.isOpen {
            let found = await persist { () async throws(RedisError) in
                try await queue.listed(urls, timeToLive: timeToLive)
            }
            if let found { return found }
        }
        return nil
    }

    /// One URL to its end; left open where the worker leaves first.
    private nonisolated(nonsending) func runURL(
        _ id: Int, _ position: Int, _ entry: PrefetchJob.Entry, _ context: BatchContext, suspect: String?,
        permit: DownloadPermit
    ) async {
        let identity = entry.identity
        switch context.tryLead(identity) ? .lead : await context.begin(identity) {
        case .ended(let ending):
            var item = PrefetchQueue.Settled(position: position, outcome: ending.outcome)
            item.failure = ending.failure
            item.failure?.line = entry.line
            jobs.settle(id, [item])
        case .lead:
            let item = await load(id, position, entry, context, suspect: suspect, permit: permit)
            context.end(identity, item.map { BatchContext.Ending(outcome: $0.outcome, failure: $0.failure) })
            if let item { jobs.settle(id, [item]) } else { jobs.leave(id) }
        }
    }

    private nonisolated(nonsending) func load(
        _ id: Int, _ position: Int, _ entry: PrefetchJob.Entry, _ context: BatchContext, suspect: String?,
        permit: DownloadPermit
    ) async -> PrefetchQueue.Settled? {
        var request = LoadRequest(url: entry.url, key: context.keyRule.key(for: entry.url))
        request.level = max(context.options.level, configuration.minimumLevel)
        request.unverifiable = context.options.unverifiable
        request.computesDigest = context.options.digest != "none"
        request.isDurable = context.options.durability == "file"
        request.options = context.loadOptions
        request.cookies = context.cookies
        request.maxConnectionsPerHost = context.options.maxPerHost
        request.wantsPath = false
        entry.settings?.apply(to: &request)
        request.permit = permit
        if configuration.history != nil { request.willLeaveCache = { [jobs] in jobs.noteBeginning(id, position) } }
        if let suspect {
            // A death while it is marked is its doing: nothing else is with the decoder then.
            request.decodesAlone = { isAlone in await self.mark(isAlone ? suspect : nil) }
        }
        if keeper.limits.maxSize != nil {
            // Once more before it is stored: what has begun waits in the downloader, more of it than is in flight.
            request.willStore = { await self.waitForRoom() }
        }
        // The URL that met a local fault first looks whether it is mended; all others wait at the gate.
        var isProbe = false
        defer { if isProbe && fault.reopen() { configuration.onEvent(.resumed) } }
        while !Task.isCancelled {
            if !isProbe { await fault.wait() }
            if !keeper.hasRoom { await waitForRoom() }
            if permit.isRevoked || draining.isOpen && (fault.message != nil || !keeper.hasRoom) { return nil }
            do throws(WebImageError) {
                let image = try await manager.loadOnPool(request)
                var item = PrefetchQueue.Settled(position: position, outcome: image.outcome)
                if image.outcome == .downloaded { item.bytes = image.byteCount }
                if image.attempts > 0 {
                    item.fetch = FetchTally.Fetch(
                        format: image.info.format, timing: image.timing, tries: image.attempts)
                }
                // The original takes a URL off its list when it was downloaded; a cached one stays on it.
                if request.options.contains(.retryFailed),
                    !context.policy.asksBeforeCache || image.outcome == .downloaded
                {
                    item.unlist = entry.url
                }
                return item
            } catch {
                if error.code == .cancelled { return nil }
                guard let outcome = error.outcome else {
                    if fault.close(error.message) {
                        isProbe = true
                        configuration.onEvent(.paused(error.message))
                    }
                    if [EMFILE, ENFILE].contains(error.underlyingCode) {
                        await manager.downloader.closeIdleConnections()
                    }
                    if isProbe { try? await Task.sleep(for: .seconds(Double.random(in: 1...2))) }
                    continue
                }
                var item = failed(
                    position, entry, outcome, httpStatus: error.httpStatus, attempts: error.attempts,
                    detail: error.message)
                if outcome == .unsupported { item.fetch?.format = error.unverifiedFormat }
                if context.policy.lists(error) { item.list = entry.url }
                if outcome == .refused { await tellRefusal(of: entry.url, error, context) }
                return item
            }
        }
        return nil
    }

    private nonisolated func failed(
        _ position: Int, _ entry: PrefetchJob.Entry, _ outcome: PrefetchOutcome, httpStatus: Int? = nil,
        attempts: Int = 0,
        detail: String
    ) -> PrefetchQueue.Settled {
        var item = PrefetchQueue.Settled(position: position, outcome: outcome)
        item.failure = FailureDetail(
            line: entry.line, url: entry.url, outcome: outcome, httpStatus: httpStatus, attempts: attempts,
            detail: detail, settings: entry.settings)
        // What was refused was not asked for.
        if attempts > 0 && outcome != .refused {
            item.fetch = FetchTally.Fetch(format: nil, timing: nil, tries: attempts)
        }
        return item
    }

    private nonisolated func poison(_ claim: PrefetchQueue.Claim, _ policy: FailedURLPolicy) -> PrefetchQueue.Settled {
        let entry = claim.job.entries[0]
        var item = failed(0, entry, .poison, attempts: claim.marks, detail: "its bytes ended \(claim.marks) workers")
        // These were no tries of its own, as far as anybody knows.
        item.fetch = nil
        if policy != .none { item.list = entry.url }
        return item
    }

    private func mark(_ claim: String?) async {
        _ = await persist { () async throws(RedisError) in try await queue.mark(worker: name, claim: claim) }
    }

    private func split(_ claim: PrefetchQueue.Claim) async {
        _ = await persist { () async throws(RedisError) in
            try await queue.split(worker: name, claim: claim, into: claim.job.split(into: 8))
        }
    }

    private func tellRefusal(of url: String, _ error: WebImageError, _ context: BatchContext) async {
        guard let host = error.refusedAddress, context.isFirstRefusal(of: host) else { return }
        configuration.onEvent(.refused(host: host, message: error.message))
        _ = await persist { () async throws(RedisError) in
            try await queue.noteRefusal(batch: context.batch.id, host: host, message: error.message)
        }
    }
}
