internal import Redis
internal import WebImage

extension BatchRepair {
    /// Details of URLs that were not skipped go; a `poison` URL gets one where it has none, and is listed where the policy lists.
    func mendDetails(_ status: BatchStatus, _ entries: Result<BatchEntries, PrefetchError>) async throws(PrefetchError)
    {
        let pruned = try await redis { () async throws(RedisError) in try await prune(status) }
        if pruned > 0 { tell("\(batch): \(pruned) details were of URLs that were not skipped") }
        guard status.counts[.poison] > 0 else { return }
        let indices = try await redis { () async throws(RedisError) in try await poisoned(status.total) }
        var kept = try await redis { () async throws(RedisError) in
            try await queue.details(of: batch, indices: indices)
        }
        let missing = Set(indices.filter { kept[$0] == nil })
        if !missing.isEmpty, case .success(let entries) = entries {
            var (index, made) = (0, [Int: FailureDetail]())
            try await entries.forEach { entry throws(PrefetchError) in
                defer { index += 1 }
                if missing.contains(index) {
                    made[index] = FailureDetail(
                        line: entry.line, url: entry.url, outcome: .poison, attempts: 3,
                        detail: "its bytes ended 3 workers", settings: entry.settings)
                }
                return made.count < missing.count
            }
            try await write(made, status)
            kept.merge(made) { $1 }
        }
        try await list(kept.values.map(\.url), status)
    }

    private func prune(_ status: BatchStatus) async throws(RedisError) -> Int {
        let key = RedisArgument(queue.keys.skipped(batch))
        let kept = try await queue.read([["HLEN", key]])[0].get().int ?? 0
        let skipped =
            status.state == .cancelled ? status.counts.skipped - status.counts[.cancelled] : status.counts.skipped
        guard kept > min(status.keepDetails, skipped) else { return 0 }
        var (cursor, pruned) = ("0", 0)
        repeat {
            let reply =
                try await queue.read([["HSCAN", key, RedisArgument(cursor), "COUNT", "500"]])[0].get().array ?? []
            cursor = reply.first?.string ?? "0"
            let pairs = (reply.last?.array ?? []).compactMap(\.string)
            let indices = stride(from: 0, to: pairs.count, by: 2).map { pairs[$0] }
            if !indices.isEmpty {
                pruned += try await queue.prune(batch, token: token, keep: status.keepDetails, indices: indices)
            }
        } while cursor != "0"
        return pruned
    }

    /// Indices of URLs that ended `poison`: few, or something is very wrong.
    private func poisoned(_ total: Int) async throws(RedisError) -> [Int] {
        var found: [Int] = []
        for start in stride(from: 0, to: total, by: 1 << 20) {
            let codes = try await queue.outcomes(of: batch, range: start..<min(start + 1 << 20, total))
            found += codes.indices.filter { codes[$0] == PrefetchOutcome.poison.rawValue }.map { start + $0 }
        }
        return Array(found.prefix(1000))
    }

    private func write(_ details: [Int: FailureDetail], _ status: BatchStatus) async throws(PrefetchError) {
        let key = RedisArgument(queue.keys.skipped(batch))
        try await redis { () async throws(RedisError) in
            let kept = try await queue.read([["HLEN", key]])[0].get().int ?? 0
            let room = details.sorted { $0.key < $1.key }.prefix(max(0, status.keepDetails - kept))
            guard !room.isEmpty else { return }
            for reply in try await queue.read(
                room.map { ["HSETNX", key, RedisArgument($0.key), RedisArgument($0.value.encoded())] })
            {
                _ = try reply.get()
            }
            tell("\(batch): \(room.count) poison URLs had no detail, and have one")
        }
    }

    private func list(_ urls: [String], _ status: BatchStatus) async throws(PrefetchError) {
        guard !urls.isEmpty, status.state == .running, !status.options.retryFailed,
            status.options.blacklist != FailedURLPolicy.none.rawValue
        else { return }
        let added = try await redis { () async throws(RedisError) in
            let key = RedisArgument(queue.keys.failed)
            let meta = "\(status.at) \(status.at) 1 poison 0 \(batch) its bytes ended 3 workers"
            let lapse = status.options.lapse
            let order = RedisArgument(lapse > 0 ? queue.keys.failedLapses : queue.keys.failedStays)
            var added = 0
            for url in urls {
                let replies = try await queue.read([
                    ["SADD", key, RedisArgument(url)],
                    ["HSETNX", RedisArgument(queue.keys.failedMeta), RedisArgument(url), RedisArgument(meta)],
                    ["ZADD", order, "NX", RedisArgument(status.at + lapse), RedisArgument(url)],
                ])
                added += try replies[0].get().int ?? 0
                for reply in replies.dropFirst() { _ = try reply.get() }
            }
            return added
        }
        if added > 0 { tell("\(batch): \(added) poison URLs were not on the list of failed URLs, and are") }
    }
}
