internal import Redis
internal import Threading
internal import WebImage

extension PrefetchWorker {
    /// Asks and tells Redis what the downloader wants to know and has to say of hosts and sites: one call for all of them, and none while
    /// there is neither a limit nor a rate nor trouble nor a new site.
    func hostLoop() async {
        while !Task.isCancelled, let calls = await manager.downloader.nextHostCalls() {
            if !calls.news.isEmpty {
                _ = await persist { () async throws(RedisError) in try await queue.note(calls.news) }
            }
            if !calls.rules.isEmpty {
                _ = await persist { () async throws(RedisError) in try await queue.noteRobots(calls.rules) }
            }
            if !calls.sites.isEmpty { await askAboutRobots(calls.sites) }
            if !calls.shares.isEmpty { await share(calls.shares) }
            guard !calls.wishes.isEmpty else { continue }
            let granted = await persist { () async throws(RedisError) in try await queue.reserve(calls.wishes) }
            let answers = calls.wishes.enumerated().map { index, wish in
                (host: wish.host, reservation: granted.flatMap { index < $0.count ? $0[index] : nil })
            }
            await manager.downloader.grant(answers)
        }
    }

    private func share(_ wishes: [HostShareWish]) async {
        let worker = name
        let granted = await persist { () async throws(RedisError) in try await queue.share(wishes, worker: worker) }
        await manager.downloader.grantShares(
            wishes.enumerated().map { index, wish in
                (wish.host, granted.flatMap { index < $0.count ? $0[index] : nil })
            })
    }

    private func askAboutRobots(_ sites: [RobotsSite]) async {
        let worker = name
        let answers = await persist { () async throws(RedisError) in try await queue.robots(of: sites, worker: worker) }
        // Where Redis takes the question itself for wrong, each asks for itself.
        await manager.downloader.grantRobots(
            sites.enumerated().map { index, site in
                (site, answers.flatMap { index < $0.count ? $0[index] : nil } ?? .ask)
            })
    }

    /// Learns what others found out about hosts, where a sign of life brought the news that they did.
    func learnOfHosts(_ version: Int?) async {
        guard let version, version != hostsVersion, await manager.downloader.governsHosts else { return }
        let hosts = await persist { () async throws(RedisError) in try await queue.troubledHosts() }
        guard let hosts else { return }
        hostsVersion = version
        await manager.downloader.adoptHosts(hosts.map(\.news))
    }

    /// How many URLs that wait for their host, for an answer or for the transfer of another process do not count as work in hand: so many more are claimed, or a slow host
    /// would keep those of others from being asked. Bounded, since each costs some kilobytes.
    func allowance(_ activity: ImageDownloader.Activity) -> Int {
        min(
            4096,
            activity.waitingForHost + activity.parked + activity.retrying + manager.cache.transfers.waitingForOthers)
    }

    /// Makes room as URLs come to wait for their hosts, also while there is nothing to claim: those behind them may be for hosts that
    /// answer. It looks only while somebody waits for a slot.
    func roomLoop() async {
        while !Task.isCancelled {
            await slots.crowd.wait()
            makeRoom(for: allowance(await manager.downloader.activity))
            guard slots.waiting > 0 else { continue }
            do { try await Task.sleep(for: .milliseconds(50)) } catch { return }
            slots.crowd.ring()
        }
    }

    /// Makes room for so many more URLs under way.
    func makeRoom(for allowance: Int) {
        let step = max(16, concurrency / 2)
        guard abs(allowance - allowed) >= step || allowance == 0 && allowed > 0 else { return }
        allowed = allowance
        slots.limit = Self.slots(for: concurrency) + allowance
        jobs.setLowWater(2 * concurrency + allowance)
    }
}
