package import Redis
internal import WebImage

extension PrefetchQueue {
    private static let look = script(PackageResources.LOOK_lua)

    /// A batch at one moment; nil where Redis has none of this id. One whose deadline has passed is ended by this look, where no worker has
    /// done it.
    package func look(at id: String) async throws(RedisError) -> BatchLook? {
        let look = try await reading(of: id)
        guard let look, look.status.isPastDeadline else { return look }
        guard await endedDue() else { return look }
        return try await reading(of: id)
    }

    private func reading(of id: String) async throws(RedisError) -> BatchLook? {
        let reply = try await run(Self.look, [RedisArgument(id)]).array ?? []
        guard reply.count == 8, let at = reply[0].int else { return nil }
        let fields = reply[1].fields ?? [:]
        guard let status = BatchStatus(id: id, fields: fields, at: at, isQueuePaused: reply[7].int == 1) else {
            return nil
        }
        var look = BatchLook(at: at, status: status, counts: Self.countsByWorker(reply[2].fields ?? [:]))
        for (name, value) in fields where name.first == "h" && name.utf8.count == 4 {
            if let code = Int(name.dropFirst()), let number = value.count { look.httpStatuses[code] = number }
        }
        for (name, value) in reply[3].fields ?? [:] {
            let numbers = (value.string ?? "").split(separator: " ").compactMap { Int(plausible: $0) }
                .map { max(0, $0) }
            guard numbers.count == 3 else { continue }
            look.hosts[name] = BatchLook.Host(finished: numbers[0], skipped: numbers[1], bytes: numbers[2])
        }
        look.waitingJobs = reply[4].int ?? 0
        let names = reply[5].array ?? []
        for (position, about) in (reply[6].array ?? []).enumerated() where 2 * position + 1 < names.count {
            guard let name = names[2 * position].string, let end = names[2 * position + 1].int else { continue }
            look.workers[name] = BatchLook.Worker(
                WorkerReport(fields: (about.fields ?? [:]).compactMapValues(\.string)), leaseLeft: end - at)
        }
        return look
    }

    /// Counts by worker from the fields `worker:code` and `worker:bytes`.
    static func countsByWorker(_ fields: [String: RedisValue]) -> [String: PrefetchCounts] {
        var counts: [String: PrefetchCounts] = [:]
        for (name, value) in fields {
            guard let colon = name.lastIndex(of: ":"), let number = value.count else { continue }
            let worker = String(name[..<colon])
            let what = name[name.index(after: colon)...]
            if what == "bytes" {
                counts[worker, default: PrefetchCounts()].bytes = number
            } else if let outcome = UInt8(what).flatMap(PrefetchOutcome.init(code:)) {
                // Several codes of later versions are one outcome here.
                counts[worker, default: PrefetchCounts()][outcome] += number
            }
        }
        return counts
    }

    private static let browse = script(PackageResources.BROWSE_lua)

    /// The newest batches, hosts in trouble, the number of failed URLs, and what Redis takes.
    package func browse(most: Int = 12) async throws(RedisError) -> QueueLook {
        let reply = try await run(Self.browse, [RedisArgument(most)]).array ?? []
        var look = QueueLook()
        guard let at = reply.first?.int, reply.count >= 4 else { return look }
        look.at = at
        look.failedURLs = reply[1].int ?? 0
        look.isPaused = reply[2].int == 1
        look.hosts = Self.troubledHosts(reply[3].fields ?? [:], at: at)
        for position in stride(from: 4, to: reply.count - 1, by: 2) {
            guard let id = reply[position].string,
                let status = BatchStatus(
                    id: id, fields: reply[position + 1].fields ?? [:], at: at, isQueuePaused: look.isPaused)
            else { continue }
            look.batches.append(status)
        }
        let memory = try await read([["INFO", "memory"]])[0].string ?? ""
        look.memory =
            memory.split(whereSeparator: \.isNewline).first { $0.hasPrefix("used_memory:") }
            .flatMap { Int($0.dropFirst("used_memory:".count)) } ?? 0
        return look
    }

    /// What became of workers that are not registered: `left` or `lost`, when, and how many of their jobs others got; nil where that is
    /// known no more.
    package func ends(
        ofWorkers names: [String]
    ) async throws(RedisError) -> [String: (
        state: WorkerRecord.State, ended: Int, returned: Int
    )] {
        guard !names.isEmpty else { return [:] }
        let replies = try await read(
            names.map { ["HMGET", RedisArgument(keys.worker($0)), "state", "ended", "returned"] })
        var ends: [String: (state: WorkerRecord.State, ended: Int, returned: Int)] = [:]
        for (name, reply) in zip(names, replies) {
            guard let values = reply.array, values.count == 3, let state = values[0].string else { continue }
            ends[name] = (state == "left" ? .left : .lost, values[1].count ?? 0, values[2].count ?? 0)
        }
        return ends
    }

    /// Some of the entries kept about skipped URLs, chosen by chance, by their index.
    package func someFailures(of id: String, most: Int) async throws(RedisError) -> [Int: FailureDetail] {
        let reply = try await read([["HRANDFIELD", RedisArgument(keys.skipped(id)), RedisArgument(most), "WITHVALUES"]]
        )[0]
        var found: [Int: FailureDetail] = [:]
        for (name, value) in try reply.get().fields ?? [:] {
            guard let index = Int(plausible: name), let detail = value.string.flatMap(FailureDetail.init(encoded:))
            else {
                continue
            }
            found[index] = detail
        }
        return found
    }
}
