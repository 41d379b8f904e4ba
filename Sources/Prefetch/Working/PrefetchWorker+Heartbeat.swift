internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Gives a sign of life every second, or every third of a lease where that is shorter. It asks the download loop first: a worker whose loop hangs gives none, and
    /// others take its jobs.
    func beatLoop() async {
        let third = Duration.milliseconds(configuration.lease / 3)
        let interval = min(third, .seconds(1))
        var trouble = false
        var isFirst = true
        while !Task.isCancelled {
            // The first one at once: it brings what the worker is to keep to.
            if !isFirst { do { try await Task.sleep(for: interval) } catch { return } }
            isFirst = false
            let activity = await manager.downloader.activity
            let oldest = await oldestNotes()
            // From here to the call nothing is waited for: a worker that has joined anew in between would tell under its new name what it
            // had done under the old one, and both would count it.
            let worker = name
            guard !isJoining else { continue }
            let held = Array(jobs.batches)
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
            let began = ContinuousClock.now
            guard
                let reply = await persist({ () async throws(RedisError) in
                    try await queue.beat(
                        worker: worker, lease: configuration.lease, trouble: trouble, batches: held,
                        claims: claims(of: worker), about: about)
                })
            else { continue }
            trouble = ContinuousClock.now - began > third
            guard let orders = reply else {
                await rejoin(after: worker)
                continue
            }
            for (batch, order) in zip(held, orders.batches) where order.state != BatchStatus.State.running.rawValue {
                if order.state != BatchStatus.State.done.rawValue { batches[batch]?.over.open() }
            }
            await obey(orders, held: held)
            await persist { () async throws(RedisError) in try await tellHosts(through: queue) }
            await learnOfHosts(orders.hostsVersion)
            await takeHostShare()
        }
    }

    /// The claims it knows of, as of the moment a heartbeat is sent; nil where it has another name by now.
    private func claims(of worker: String) -> PrefetchQueue.KnownClaims? {
        worker == name ? PrefetchQueue.KnownClaims(sequence: sequence, names: jobs.names(of: worker)) : nil
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
