internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Tells the heartbeat what to say, at its intervals, and acts on what comes back.
    func beatLoop() async {
        let interval = Heartbeat.interval(lease: configuration.lease)
        let idleInterval = Heartbeat.interval(lease: configuration.lease, isIdle: true)
        var (isFirst, hasSaidIdle) = (true, false)
        while !Task.isCancelled {
            // The first one at once: it brings what the worker is to keep to.
            if !isFirst {
                do { try await Task.sleep(for: interval) } catch { return }
                // That it has nothing any more it says at once.
                if jobs.isEmpty, hasSaidIdle, !orders.isWorkerPaused {
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

    /// What the worker says of itself now; nil while it joins.
    private func statement() async -> Heartbeat.Statement? {
        let activity = await manager.downloader.activity
        let oldest = await oldestNotes()
        // From here on nothing is waited for: a worker that has joined anew in between would tell under its new name what it had done under
        // the old one, and both would count it.
        guard !isJoining else { return nil }
        // Begun, and neither transferred nor about to be.
        let checking = max(0, min(slots.used, jobs.openCount) - activity.operations)
        var report = WorkerReport()
        (report.inFlight, report.stalled) = (activity.running + activity.parked, activity.parked)
        (report.checking, report.retrying) = (checking, activity.retrying)
        report.waitingForHost = activity.waitingForHost
        (report.finished, report.skipped, report.bytes) = (ownTotals.finished, ownTotals.skipped, ownTotals.bytes)
        report.maxConcurrentDownloads = concurrency
        (report.trouble, report.complaint) = (fault.message ?? "", complaints.current ?? "")
        (report.oldest, report.cache) = (oldest, cache.id)
        // As far as that is known without asking its disk, which may hang.
        if let known = manager.cache.disk.knownTotals {
            (report.cacheImages, report.cacheBytes) = (known.count, known.size)
            report.cacheLimit = keeper.limits.maxSize
        }
        (report.residentBytes, report.cpu) = (Vitals.residentBytes, Vitals.milliseconds)
        return Heartbeat.Statement(
            worker: name, batches: Array(jobs.batches), claims: claims, about: report.fields)
    }

    private func heed(_ news: Heartbeat.News) async {
        switch news {
        case .answered(let statement, let orders):
            redisAnswers()
            for (batch, order) in zip(statement.batches, orders.batches)
            where order.state != BatchStatus.State.running.rawValue {
                if order.state != BatchStatus.State.done.rawValue { batches[batch]?.over.open() }
            }
            await obey(orders, held: statement.batches)
            learnOfUnlisted(orders.unlisted ?? 0)
            await persist { () async throws(RedisError) in try await tellHosts(through: queue) }
            await learnOfHosts(orders.hostsVersion)
            if orders.mayReap { reapBell.ring() }
        case .lost(let worker): await rejoin(after: worker)
        case .failed(let error):
            if error.code == .reply {
                complaints.say(error.message)
            } else if error.code != .interrupted {
                redisFails(error)
            }
        case .held:
            if !isHeld { configuration.onEvent(.held(true)) }
            isHeld = true
            _ = jobs.callBack(nil)
            slots.dismissRevoked()
            await manager.downloader.endRevoked()
        case .released(let worker, let jobs): configuration.history?.released(worker, jobs)
        case .goesOn:
            if isHeld { configuration.onEvent(.held(false)) }
            isHeld = false
        }
    }

    /// Says once that failed URLs go because there are more than their list may have; what went before it came is no news.
    private func learnOfUnlisted(_ count: Int) {
        if let unlisted, count > unlisted {
            complaints.say(
                "the list of failed URLs has reached its limit, so the oldest go; raise it: prefetch-coord blacklist set "
                    + "--blacklist-max N")
        }
        unlisted = count
    }

    /// The claims it knows of now.
    private var claims: PrefetchQueue.KnownClaims {
        PrefetchQueue.KnownClaims(sequence: sequence, names: jobs.names(of: name))
    }

    /// Looks for the dead where a heartbeat was told that there may be some, and every four leases. There is no leader: the script's own look
    /// makes one winner.
    func reapLoop() async {
        while !Task.isCancelled {
            await reapBell.wait(atMost: .milliseconds(configuration.lease * 4))
            // Not all that were told come together.
            do { try await Task.sleep(for: .milliseconds(Int.random(in: 0...100))) } catch { return }
            var result: PrefetchQueue.ReapResult?
            repeat {
                result = await persist { () async throws(RedisError) in try await queue.reap() }
            } while result.map { if case .reaped = $0 { true } else { false } } ?? false
        }
    }
}
