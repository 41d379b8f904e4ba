internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Tells the heartbeat what to say, every second, or every third of a lease where that is shorter, and acts on what comes back.
    func beatLoop() async {
        let interval = Heartbeat.interval(lease: configuration.lease)
        var isFirst = true
        while !Task.isCancelled {
            // The first one at once: it brings what the worker is to keep to.
            if !isFirst { do { try await Task.sleep(for: interval) } catch { return } }
            isFirst = false
            if let statement = await statement() { heartbeat.tell(statement) }
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
        let about =
            [
                ("in_flight", String(activity.running + activity.parked)), ("checking", String(checking)),
                ("waiting_for_host", String(activity.waitingForHost)), ("finished", String(ownTotals.finished)),
                ("skipped", String(ownTotals.skipped)), ("bytes", String(ownTotals.bytes)),
                ("trouble", fault.message ?? ""), ("oldest", oldest),
                ("max_concurrent_downloads", String(concurrency)), ("complaint", complaints.current ?? ""),
                ("cache", cacheID),
                ("retrying", String(activity.retrying)), ("parked", String(activity.parked)),
            ] + aboutCache + Vitals.now
        return Heartbeat.Statement(
            worker: name, batches: Array(jobs.batches), claims: claims, about: about)
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

    /// What the cache has and may have, as far as that is known without asking its disk, which may hang.
    private var aboutCache: [(String, String)] {
        guard let known = manager.cache.disk.knownTotals else { return [] }
        return [("cache_images", String(known.count)), ("cache_bytes", String(known.size))]
            + (keeper.limits.maxSize.map { [("cache_limit", String($0))] } ?? [])
    }

    /// Looks for the dead every third of a lease, more or less. There is no leader: the script's own look makes one winner.
    func reapLoop() async {
        while !Task.isCancelled {
            let wait = Double(configuration.lease) / 3 * Double.random(in: 0.7...1.3)
            do { try await Task.sleep(for: .milliseconds(Int(wait))) } catch { return }
            var result: PrefetchQueue.ReapResult?
            repeat {
                result = await persist { () async throws(RedisError) in try await queue.reap() }
            } while result.map { if case .reaped = $0 { true } else { false } } ?? false
        }
    }
}
