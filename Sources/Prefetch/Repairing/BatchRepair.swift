internal import Redis
internal import WebImage

/// Repairs a batch after Redis has lost a part of it: recounts its outcomes, removes invalid jobs from its list, and pushes open URLs that
/// are in no job, exactly those and once. Safe while workers run, and while the list is fed.
///
/// The batch is read in pieces, and only while its jobs are read none of them is claimed. A repair that dies is repeated; its hold is
/// released by any worker after ten seconds.
package struct BatchRepair: Sendable {
    let queue: PrefetchQueue
    let batch: String
    private let listPath: String?
    let token: String
    /// Called with a sentence for each change.
    let tell: @Sendable (String) -> Void

    /// * `listPath`: the list's current path, if it has moved.
    package init(
        queue: PrefetchQueue, batch: String, listPath: String? = nil, tell: @escaping @Sendable (String) -> Void
    ) {
        self.queue = queue
        self.batch = batch
        self.listPath = listPath
        token = String(UInt64.random(in: 0...UInt64.max), radix: 16)
        self.tell = tell
    }

    /// Repairs; returns false if Redis has no such batch: its remains are removed.
    /// - Throws: `stopped` if another repair of it is running; `unreadableList` if URLs have to be pushed again and the list is not
    ///   available; errors of Redis.
    package func run() async throws(PrefetchError) -> Bool {
        try await bridgingErrors { () async throws(RedisError) in
            for line in try await queue.keySpace.putAside(try await queue.keySpace.wrongKeys(of: batch)) { tell(line) }
        }
        let before: BatchStatus.State
        do throws(PrefetchError) {
            let taking = try await bridgingErrors { () async throws(RedisError) in
                try await queue.repairSteps.take(batch, token: token)
            }
            switch taking {
            case .gone:
                tell(
                    try await bridgingErrors { () async throws(RedisError) in
                        try await QueueRepair(queue: queue).removeRemains(of: batch)
                    })
                return false
            case .busy:
                throw PrefetchError(
                    .stopped, "another repair of \(batch) is under way",
                    hint: "wait for it: the lock of a killed one expires after a minute")
            case .taken: break
            }
            before = try await mend()
        } catch {
            // Whatever the error, also of a call that was executed: jobs are claimed again, and the next repair need not wait.
            _ = try? await finish()
            throw error
        }
        let (state, wrong) = try await bridgingErrors { () async throws(RedisError) in try await finish() }
        if wrong > 0 { tell("\(batch) is \(state): \(wrong) sets, slots or lists said otherwise") }
        if state != before.rawValue { tell("\(batch) is \(state)") }
        return true
    }

    /// Releases the batch. Retries unknown error replies, because a batch that stays held blocks every other repair for a minute.
    private func finish() async throws(RedisError) -> (state: String, wrong: Int) {
        var pause = Duration.milliseconds(50)
        for _ in 0..<4 {
            do throws(RedisError) {
                return try await queue.repairSteps.finish(batch, token: token)
            } catch {
                guard error.code == .reply, error.replyCode != "WRONGTYPE" else { throw error }
                try? await Task.sleep(for: pause)
                pause *= 2
            }
        }
        return try await queue.repairSteps.finish(batch, token: token)
    }

    /// Returns the state of the batch before ``finish()``.
    private func mend() async throws(PrefetchError) -> BatchStatus.State {
        let found = try await bridgingErrors { () async throws(RedisError) in try await queue.batches.status(of: batch)
        }
        guard let before = found else { throw lost() }
        let entries: Result<BatchEntries, PrefetchError>
        do throws(PrefetchError) {
            entries = .success(try await BatchEntries(of: before, queue: queue, listPath: listPath))
        } catch {
            // Needed only if something has to be pushed again.
            entries = .failure(error)
        }
        let total = (try? entries.get().total) ?? (before.isSealed ? before.total : max(before.total, before.pushed))
        let lastOutcome = try await count(limit: total)
        guard
            let status = try await bridgingErrors({ () async throws(RedisError) in
                try await queue.batches.status(of: batch)
            })
        else {
            throw lost()
        }
        if status.state == .running {
            let missing = try await missing(status, entries, total: total, lastOutcome: lastOutcome)
            if missing.contains(true) { try await push(missing, try entries.get()) }
            if !status.isSealed, status.isWaitingForList {
                tell("\(batch) waits for its list: prefetch-coord submit --resume \(status.listPath)")
            }
        }
        try await repairDetails(status, entries)
        try await repairRecords(total)
        return status.state
    }

    /// Corrects the counts; returns the index after the last outcome.
    private func count(limit: Int) async throws(PrefetchError) -> Int {
        let counted = try await bridgingErrors { () async throws(RedisError) in
            try await queue.repairSteps.recount(batch, token: token, limit: limit)
        }
        guard let counted else { throw lost() }
        if counted.wrong > 0 { tell("\(counted.wrong) outcomes of \(batch) were none, or of no URL: these are open") }
        for change in try await bridgingErrors({ () async throws(RedisError) in
            try await queue.repairSteps.tally(batch, token: token)
        }) {
            if change.name == "state" {
                tell("\(batch) was done, and has open URLs: it runs again")
            } else {
                tell("\(batch): \(Self.name(of: change.name)) was \(change.old), and is \(change.new)")
            }
        }
        return counted.end
    }

    /// The name of a count such as `o5` or `workers:5`, for messages.
    private static func name(of field: String) -> String {
        func outcome(_ text: Substring) -> String {
            UInt8(text).flatMap(PrefetchOutcome.init(code:))?.name ?? String(text)
        }
        if field.hasPrefix("workers:") { return "the workers' sum of \(outcome(field.dropFirst("workers:".count)))" }
        return field.first == "o" ? outcome(field.dropFirst()) : field
    }

    /// The URLs that are open and in no job, after invalid jobs were removed from the list.
    private func missing(
        _ status: BatchStatus, _ entries: Result<BatchEntries, PrefetchError>, total: Int, lastOutcome: Int
    ) async throws(PrefetchError) -> [Bool] {
        let hasList = (try? entries.get()) != nil
        for _ in 0..<100 {
            var isDone = false
            let result = try await bridgingErrors { () async throws(RedisError) -> [Bool]? in
                guard let pushed = try await queue.repairSteps.hold(batch, token: token, begins: true) else {
                    return []
                }
                let settled = try await settledURLs(total)
                guard
                    let jobs = try await JobCoverage.read(
                        status.identity, queue: queue, token: token, limit: total, sweeps: hasList,
                        settled: { settled[$0] })
                else { return nil }
                if jobs.buried > 0 {
                    tell(
                        "\(jobs.buried) malformed elements of the job list of \(batch) were moved to the dead-letter list"
                    )
                }
                if jobs.doubled > 0 { tell("\(jobs.doubled) jobs of \(batch) had URLs of others: they are taken off") }
                // Jobs read before an element was removed may be outdated.
                guard jobs.buried + jobs.doubled == 0 else { return nil }
                let end = status.isSealed ? total : min(total, max(pushed, jobs.end))
                if end != pushed || (status.isSealed && status.total != total) {
                    guard
                        try await queue.repairSteps.setPushed(
                            batch, token: token, from: pushed, to: end, total: status.isSealed ? total : nil)
                    else { return nil }
                    tell("\(batch): \(pushed) URLs were pushed, and are \(end)")
                }
                try await dropDeaths(jobs.names)
                // Last, since jobs end meanwhile.
                let ended = try await settledURLs(total)
                isDone = true
                return (0..<total).map { $0 < end && !ended[$0] && !jobs.isCovered[$0] }
            }
            if let result {
                guard isDone else { throw lost() }
                try await bridgingErrors { () async throws(RedisError) in
                    try await queue.repairSteps.letGo(batch, token: token)
                }
                return result
            }
        }
        throw PrefetchError(
            .stopped, "the jobs of \(batch) change all the time: they could not be counted",
            hint: "repair it again when less continues")
    }

    private func settledURLs(_ total: Int) async throws(RedisError) -> [Bool] {
        var settled: [Bool] = []
        settled.reserveCapacity(total)
        for start in stride(from: 0, to: total, by: 1 << 20) {
            settled += try await queue.results.outcomes(of: batch, range: start..<min(start + 1 << 20, total)).map {
                $0 != 0
            }
        }
        return settled
    }

    /// I6: removes deaths of jobs that do not exist.
    private func dropDeaths(_ names: Set<String>) async throws(RedisError) {
        let key = RedisArgument(queue.keys.tries(batch))
        let tries = (try await queue.redis.read([["HGETALL", key]])[0].get().fields ?? [:]).compactMapValues(\.int)
        var commands: [[RedisArgument]] = []
        for (name, count) in tries where !name.hasSuffix("~") {
            let job = name.hasSuffix("!") ? String(name.dropLast()) : name
            if !names.contains(job) {
                commands.append(["HDEL", key, RedisArgument(name)])
            } else if job != name, count > tries[job] ?? 0 {
                commands.append(["HSET", key, RedisArgument(job), RedisArgument(count)])
            }
        }
        guard !commands.isEmpty else { return }
        for reply in try await queue.redis.read(commands) { _ = try reply.get() }
        tell("\(batch): the deaths of \(commands.count) jobs were wrong")
    }

    /// Pushes the URLs again, in jobs of neighbours.
    private func push(_ missing: [Bool], _ entries: BatchEntries) async throws(PrefetchError) {
        let size = min(PrefetchJob.maxCount, max(1, ((entries.total ?? 0) + 63) / 64))
        let (first, count) = (missing.firstIndex(of: true) ?? 0, missing.count { $0 })
        var (index, jobs, bytes, jobBytes, pushed) = (first, [PrefetchJob](), 0, 0, 0)
        try await entries.forEach(from: first) { entry async throws(PrefetchError) in
            defer { index += 1 }
            guard index < missing.count else { return false }
            guard missing[index] else { return true }
            let job = jobs.last
            if let job, job.base + job.entries.count == index, job.entries.count < size,
                jobBytes < PrefetchJob.fullBytes
            {
                jobs[jobs.count - 1].entries.append(entry)
            } else {
                if jobs.count == 64 || bytes > 1 << 18 {
                    try await offer(jobs)
                    pushed += jobs.count
                    (jobs, bytes) = ([], 0)
                }
                jobs.append(PrefetchJob(batch: batch, base: index, entries: [entry]))
                jobBytes = 0
            }
            bytes += entry.byteCount
            jobBytes += entry.byteCount
            return true
        }
        if !jobs.isEmpty { try await offer(jobs) }
        pushed += jobs.count
        tell(
            "pushed \(count) URLs of \(batch) again, which were in no job: \(pushed) jobs, the first index is \(first)")
    }

    private func offer(_ jobs: [PrefetchJob]) async throws(PrefetchError) {
        guard let last = jobs.last else { return }
        var reportedFull = false
        while true {
            let answer = try await bridgingErrors { () async throws(RedisError) in
                try await queue.repairSteps.refill(
                    batch, token: token, upTo: last.base + last.entries.count, jobs: jobs)
            }
            switch answer {
            case .taken: return
            case .closed: throw lost()
            case .full:
                if !reportedFull { tell("\(batch) has as many jobs as may wait: the rest comes as workers take some") }
                reportedFull = true
                do { try await Task.sleep(for: .milliseconds(50)) } catch {
                    throw PrefetchError(.stopped, "stopped before all was pushed again", hint: "repair it again")
                }
            }
        }
    }

    private func lost() -> PrefetchError {
        PrefetchError(
            .stopped, "\(batch) ended, or another repair has taken it", hint: "check it: prefetch-coord fsck \(batch)"
        )
    }
}

// MARK: - Details

extension BatchRepair {
    /// Removes details of URLs that were not skipped; adds missing details of `poison` URLs, and lists them if the policy does.
    private func repairDetails(
        _ status: BatchStatus, _ entries: Result<BatchEntries, PrefetchError>
    ) async throws(PrefetchError) {
        let pruned = try await bridgingErrors { () async throws(RedisError) in try await prune(status) }
        if pruned > 0 { tell("\(batch): \(pruned) details were of URLs that were not skipped") }
        guard status.counts[.poison] > 0 else { return }
        let indices = try await bridgingErrors { () async throws(RedisError) in try await poisoned(status.total) }
        var kept = try await bridgingErrors { () async throws(RedisError) in
            try await queue.results.details(of: batch, indices: indices)
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
        let kept = try await queue.redis.read([["HLEN", key]])[0].get().int ?? 0
        let skipped =
            status.state == .cancelled ? status.counts.skipped - status.counts[.cancelled] : status.counts.skipped
        guard kept > min(status.keepDetails, skipped) else { return 0 }
        var (cursor, pruned) = ("0", 0)
        repeat {
            let reply =
                try await queue.redis.read([["HSCAN", key, RedisArgument(cursor), "COUNT", "500"]])[0].get().array ?? []
            cursor = reply.first?.string ?? "0"
            let pairs = (reply.last?.array ?? []).compactMap(\.string)
            let indices = stride(from: 0, to: pairs.count, by: 2).map { pairs[$0] }
            if !indices.isEmpty {
                pruned += try await queue.repairSteps.prune(
                    batch, token: token, keep: status.keepDetails, indices: indices)
            }
        } while cursor != "0"
        return pruned
    }

    /// Indices of URLs that ended `poison`: normally few.
    private func poisoned(_ total: Int) async throws(RedisError) -> [Int] {
        var found: [Int] = []
        for start in stride(from: 0, to: total, by: 1 << 20) {
            let codes = try await queue.results.outcomes(of: batch, range: start..<min(start + 1 << 20, total))
            found += codes.indices.filter { codes[$0] == PrefetchOutcome.poison.rawValue }.map { start + $0 }
        }
        return Array(found.prefix(1000))
    }

    private func write(_ details: [Int: FailureDetail], _ status: BatchStatus) async throws(PrefetchError) {
        let key = RedisArgument(queue.keys.skipped(batch))
        try await bridgingErrors { () async throws(RedisError) in
            let kept = try await queue.redis.read([["HLEN", key]])[0].get().int ?? 0
            let room = details.sorted { $0.key < $1.key }.prefix(max(0, status.keepDetails - kept))
            guard !room.isEmpty else { return }
            for reply in try await queue.redis.read(
                room.map { ["HSETNX", key, RedisArgument($0.key), RedisArgument($0.value.encoded())] })
            {
                _ = try reply.get()
            }
            tell("\(batch): \(room.count) poison URLs had no detail, and have one")
        }
    }

    private func list(_ urls: [String], _ status: BatchStatus) async throws(PrefetchError) {
        guard !urls.isEmpty, status.state == .running, !status.options.retryFailed,
            status.options.blacklist != .none
        else { return }
        let added = try await bridgingErrors { () async throws(RedisError) in
            let key = RedisArgument(queue.keys.failed)
            let lapse = status.options.listingTTL.milliseconds(.poison, httpStatus: nil)
            let next = lapse > 0 ? status.at + lapse : 0
            let meta = "\(status.at) \(status.at) 1 \(next) poison 0 \(batch) its bytes ended 3 workers"
            let order = RedisArgument(lapse > 0 ? queue.keys.failedExpiring : queue.keys.failedPermanent)
            var added = 0
            for url in urls {
                let replies = try await queue.redis.read([
                    ["SADD", key, RedisArgument(url)],
                    ["HSETNX", RedisArgument(queue.keys.failedMeta), RedisArgument(url), RedisArgument(meta)],
                    ["ZADD", order, "NX", RedisArgument(status.at + lapse), RedisArgument(url)],
                ])
                added += try replies[0].get().int ?? 0
                for reply in replies.dropFirst() { _ = try reply.get() }
            }
            return added
        }
        if added > 0 { tell("\(batch): \(added) poison URLs were missing from the blacklist and are added") }
    }
}

// MARK: - Records

extension BatchRepair {
    /// Removes records of URLs that were not skipped, and adds empty records for skipped URLs without one.
    /// * `total`: URLs of the list.
    func repairRecords(_ total: Int) async throws(PrefetchError) {
        let (dropped, made) = try await bridgingErrors { () async throws(RedisError) in
            var names = (0..<((total + FailureRecord.chunk - 1) / FailureRecord.chunk)).map { String($0) }
            let known = Set(names)
            names += try await queue.results.recordNames(of: batch).filter { !known.contains($0) }
            var (dropped, made) = (0, 0)
            for start in stride(from: 0, to: names.count, by: 64) {
                let part = Array(names[start..<min(start + 64, names.count)])
                let numbers = try await queue.repairSteps.repairRecords(batch, token: token, chunks: part)
                dropped += numbers.dropped
                made += numbers.made
            }
            return (dropped, made)
        }
        if dropped > 0 { tell("\(batch): \(dropped) records were damaged, or of URLs that were not skipped") }
        if made > 0 { tell("\(batch): \(made) skipped URLs had no record: their status, tries and time are not known") }
    }
}
