internal import Redis
internal import WebImage

/// Checks the invariants of one batch on a snapshot of Redis. Changes nothing, and workers may go on meanwhile.
/// - I1: finished = outcomes that are not open = the sum of the counts of the outcomes; skipped likewise.
/// - I2: while a batch runs, every open URL that is pushed is in exactly one job, and a waiting job can be claimed.
/// - I3: a batch is done exactly if it is sealed and every URL ended; then its temporary keys are gone.
/// - I4: claims belong to registered workers, which know of them; the workers' counts add up to the batch's.
/// - I5, that every image is in the cache, needs the cache and the list: `prefetch-coord fsck --cache` checks it.
/// - I6: deaths are counted only for existing jobs, and deaths under the mark are at most all of them; a `poison` URL has its detail, and
///   while the batch runs it is on the blacklist, if the policy lists.
/// - I7: every skipped URL has one record of its status, tries and time, and no other URL has one.
/// - Type: every key of the batch has the required type. If one does not, nothing else is checked.
package struct BatchCheck: Sendable {
    package struct Finding: Sendable, Equatable {
        package var batch: String
        /// `I1` to `I7`, or `Type`.
        package var invariant: String
        package var message: String
        /// Whether a worker mends it, see ``QueueHealing``.
        package var heals: Bool

        package init(batch: String, invariant: String, message: String, heals: Bool = false) {
            self.batch = batch
            self.invariant = invariant
            self.message = message
            self.heals = heals
        }
    }

    let queue: PrefetchQueue
    let batch: String
    private let owners: [String]?

    package init(queue: PrefetchQueue, batch: String) {
        self.init(queue: queue, batch: batch, owners: nil)
    }

    private init(queue: PrefetchQueue, batch: String, owners: [String]?) {
        self.queue = queue
        self.batch = batch
        self.owners = owners
    }

    /// Checks for several batches. Owners of claims are read once, by a scan of all keys, and again for workers that joined since.
    package static func checks(of batches: [String], queue: PrefetchQueue) async throws(PrefetchError) -> [BatchCheck] {
        do throws(RedisError) {
            let owners = batches.count > 1 ? try await BatchContents.owners(queue) : nil
            return batches.map { BatchCheck(queue: queue, batch: $0, owners: owners) }
        } catch {
            throw PrefetchError(error)
        }
    }

    /// Findings in the order of the invariants.
    /// - Throws: `notFound` if Redis has no such batch; errors of Redis.
    package func run() async throws(PrefetchError) -> [Finding] {
        let snapshot: BatchContents?
        var listed: [Finding] = []
        let poison: [Finding]
        do throws(RedisError) {
            let owners = if let owners { owners } else { try await BatchContents.owners(queue) }
            let wrong = try await queue.keySpace.wrongKeys(of: batch) + queue.keySpace.wrongKeys(workers: owners)
            guard wrong.isEmpty else { return wrong.map { finding("Type", $0.sentence(queue.keys)) } }
            snapshot = try await BatchContents.read(batch, queue: queue, owners: owners)
            if let snapshot { listed = try await deadlines(snapshot) }
            poison = if let snapshot { try await poisonings(snapshot) } else { [] }
        } catch {
            throw PrefetchError(error)
        }
        guard let snapshot else { throw PrefetchError(.notFound, "there is no batch '\(batch)'") }
        return counts(snapshot) + jobs(snapshot) + listed + ending(snapshot) + workers(snapshot) + poison
            + records(snapshot)
    }

    func finding(_ invariant: String, _ message: String, heals: Bool = false) -> Finding {
        Finding(batch: batch, invariant: invariant, message: message, heals: heals)
    }

    private func counts(_ snapshot: BatchContents) -> [Finding] {
        var found: [Finding] = []
        var settled = [Int](repeating: 0, count: 256)
        for code in snapshot.outcomes { settled[Int(code)] += 1 }
        settled[0] = 0
        for (code, number) in settled.enumerated() where number > 0 && PrefetchOutcome(code: UInt8(code)) == nil {
            found.append(finding("I1", "\(number) URLs have the outcome \(code), which does not exist"))
        }
        let finished = snapshot.number("finished")
        if finished != settled.reduce(0, +) {
            found.append(finding("I1", "finished is \(finished), but \(settled.reduce(0, +)) URLs have an outcome"))
        }
        var skipped = 0
        for code in 1...PrefetchOutcome.unknown.rawValue {
            guard let outcome = PrefetchOutcome(code: code) else { continue }
            let (counted, seen) = (snapshot.number("o\(code)"), settled[Int(code)])
            if counted != seen {
                found.append(finding("I1", "\(outcome.name) is \(counted), but \(seen) URLs ended so"))
            }
            if outcome.isSkipped { skipped += seen }
        }
        if snapshot.number("skipped") != skipped {
            found.append(finding("I1", "skipped is \(snapshot.number("skipped")), but \(skipped) URLs were skipped"))
        }
        // If Redis lost the end of the list, workers still report their jobs of it: these count, and are pushed again with the rest.
        let end = snapshot.number("sealed") == 1 ? snapshot.count("pushed") : snapshot.fields["total"]?.count ?? .max
        let beyond = snapshot.outcomes.dropFirst(end).count { $0 != 0 }
        if beyond > 0 { found.append(finding("I1", "\(beyond) URLs have an outcome and were never pushed")) }
        let keep = snapshot.fields["details"]?.int ?? 100_000
        if snapshot.detailsKept > min(keep, skipped) {
            found.append(
                finding(
                    "I1", "\(snapshot.detailsKept) details are kept of \(skipped) skipped URLs, at most \(keep) may be")
            )
        }
        return found
    }

    private func jobs(_ snapshot: BatchContents) -> [Finding] {
        guard snapshot.isRunning else { return [] }
        var found: [Finding] = []
        let pushed = snapshot.count("pushed")
        let identity = snapshot.identity(of: batch)
        // Nothing is known of URLs after the last outcome and the last job, whatever the total.
        var places = [UInt8](repeating: 0, count: min(pushed, snapshot.outcomes.count))
        func place(_ payload: [UInt8], _ whose: String) {
            guard let job = PrefetchJob(payload), job.batch == batch, job.base + job.entries.count <= pushed,
                job.base + job.entries.count <= BatchStatus.maxURLs
            else {
                found.append(finding("I2", "\(whose) is not a job of this batch"))
                return
            }
            places += repeatElement(0, count: max(0, job.base + job.entries.count - places.count))
            for index in job.base..<(job.base + job.entries.count) where places[index] < 255 { places[index] += 1 }
        }
        for payload in snapshot.jobs { place(payload, "an element of the job list") }
        for (worker, claims) in snapshot.owned.sorted(by: { $0.key < $1.key }) {
            // Jobs of an earlier batch with this id do not count: their reports are refused.
            for claim in claims where identity.range(ofClaim: claim.name) != nil {
                place(claim.payload, "\(claim.name), claimed by \(worker),")
            }
        }
        var (homeless, doubled): ((count: Int, first: Int?), (count: Int, first: Int?)) = ((0, nil), (0, nil))
        for (index, jobs) in places.enumerated()
        where jobs != 1 && (index >= snapshot.outcomes.count || snapshot.outcomes[index] == 0) {
            if jobs == 0 {
                homeless = (homeless.count + 1, homeless.first ?? index)
            } else {
                doubled = (doubled.count + 1, doubled.first ?? index)
            }
        }
        if pushed > places.count {
            homeless = (homeless.count + pushed - places.count, homeless.first ?? places.count)
        }
        for (wrong, what) in [(homeless, "in no job"), (doubled, "in several jobs")] {
            guard let first = wrong.first else { continue }
            found.append(finding("I2", "\(wrong.count) open URLs are \(what), the first has the index \(first)"))
        }
        let mayRun = snapshot.fields["paused"]?.string != "1" && !snapshot.jobs.isEmpty
        if snapshot.timesReady != (mayRun ? 1 : 0) {
            found.append(
                finding(
                    "I2",
                    "\(snapshot.jobs.count) jobs wait, and the batch is \(snapshot.timesReady) times in the ready lists",
                    heals: true))
        }
        if snapshot.bells != (snapshot.isAnyReady && !snapshot.isQueuePaused ? 1 : 0) {
            found.append(
                finding(
                    "I2",
                    "the bell has \(snapshot.bells) elements while \(snapshot.isAnyReady ? "a batch is" : "no batch is") ready"
                        + (snapshot.isQueuePaused ? " and the queue is paused" : ""), heals: true))
        }
        return found
    }

    private func ending(_ snapshot: BatchContents) -> [Finding] {
        var found: [Finding] = []
        let state = snapshot.fields["state"]?.string ?? ""
        let isSealed = snapshot.number("sealed") == 1
        let (finished, total) = (
            snapshot.number("finished"), snapshot.fields["total"]?.int ?? snapshot.number("pushed")
        )
        if !["running", "done", "cancelled"].contains(state) { found.append(finding("I3", "the state is '\(state)'")) }
        if isSealed && snapshot.number("pushed") != total {
            found.append(finding("I3", "sealed with \(total) URLs, but \(snapshot.number("pushed")) are pushed"))
        }
        if state == "done" && !(isSealed && finished == total) {
            found.append(finding("I3", "done with \(finished) of \(total) URLs\(isSealed ? "" : " and not sealed")"))
        }
        if state == "running" && isSealed && finished == total {
            found.append(finding("I3", "every URL ended, but the batch is not done", heals: true))
        }
        if !snapshot.isRunning && !snapshot.jobs.isEmpty {
            found.append(finding("I3", "\(state), but \(snapshot.jobs.count) jobs are left in its list"))
        }
        if !snapshot.isRunning && snapshot.timesReady > 0 {
            found.append(finding("I3", "\(state), but in a ready list", heals: true))
        }
        if snapshot.isInRunning != snapshot.isRunning {
            found.append(
                finding(
                    "I3", "\(state), and \(snapshot.isInRunning ? "" : "not ")in the set of running batches",
                    heals: true))
        }
        return found
    }

    private func workers(_ snapshot: BatchContents) -> [Finding] {
        var found: [Finding] = []
        for worker in snapshot.owned.keys.sorted() where !snapshot.workers.contains(worker) {
            found.append(
                finding(
                    "I4", "\(worker) has \(snapshot.owned[worker]?.count ?? 0) claims and is not registered",
                    heals: true))
        }
        let identity = snapshot.identity(of: batch)
        for (worker, names) in snapshot.unheld.sorted(by: { $0.key < $1.key }) {
            let lost = (snapshot.owned[worker] ?? []).filter {
                names.contains($0.name) && identity.range(ofClaim: $0.name) != nil
            }
            guard let first = lost.map(\.name).min() else { continue }
            found.append(
                finding(
                    "I4", "\(worker) does not know of \(lost.count) claims that it has, the first is \(first)",
                    heals: true))
        }
        var sums: [String: Int] = [:]
        for (name, value) in snapshot.workerCounts {
            guard let colon = name.lastIndex(of: ":") else { continue }
            sums[String(name[name.index(after: colon)...]), default: 0] += value.int ?? 0
        }
        for code in 1...PrefetchOutcome.unknown.rawValue {
            guard let outcome = PrefetchOutcome(code: code) else { continue }
            let (sum, counted) = (sums["\(code)"] ?? 0, snapshot.number("o\(code)"))
            if sum != counted {
                found.append(finding("I4", "\(outcome.name) is \(counted), but the workers' sum is \(sum)"))
            }
        }
        if sums["bytes"] ?? 0 != snapshot.number("bytes") {
            found.append(
                finding("I4", "bytes is \(snapshot.number("bytes")), but the workers' sum is \(sums["bytes"] ?? 0)"))
        }
        return found
    }
}

extension BatchContents {
    var isRunning: Bool { fields["state"]?.string == "running" }

    func identity(of batch: String) -> BatchIdentity {
        BatchIdentity(id: batch, nonce: fields["nonce"]?.string ?? "")
    }

    func number(_ name: String) -> Int { fields[name]?.int ?? 0 }

    func count(_ name: String) -> Int { max(0, number(name)) }
}

// MARK: - Deadlines

extension BatchCheck {
    /// I3: a batch that is over has no deadline left.
    func deadlines(_ snapshot: BatchContents) async throws(RedisError) -> [Finding] {
        guard snapshot.fields["state"]?.string != "running" else { return [] }
        let score = try await queue.redis.read([
            ["ZSCORE", RedisArgument(queue.keys.deadlines), RedisArgument(batch)]
        ])
        return try score[0].get().isNull ? [] : [finding("I3", "it is over, and its deadline is left", heals: true)]
    }
}

// MARK: - Poison

extension BatchCheck {
    /// I6: the records that lead to `poison`.
    private func poisonings(_ snapshot: BatchContents) async throws(RedisError) -> [Finding] {
        deaths(snapshot) + (try await details(snapshot))
    }

    private func deaths(_ snapshot: BatchContents) -> [Finding] {
        var found: [Finding] = []
        var names = Set(snapshot.jobs.compactMap { PrefetchJob.name(ofPayload: $0) })
        for claims in snapshot.owned.values {
            names.formUnion(claims.compactMap { PrefetchJob.name(ofPayload: $0.payload) })
        }
        for (name, count) in snapshot.tries.sorted(by: { $0.key < $1.key }) where !name.hasSuffix("~") {
            let job = name.hasSuffix("!") ? String(name.dropLast()) : name
            if !names.contains(job) {
                found.append(finding("I6", "\(count) deaths are counted of \(name), and there is no such job"))
            } else if job != name, count > snapshot.tries[job] ?? 0 {
                found.append(
                    finding(
                        "I6",
                        "\(count) deaths under its mark are counted of \(job), and \(snapshot.tries[job] ?? 0) in all"))
            }
        }
        return found
    }

    private func details(_ snapshot: BatchContents) async throws(RedisError) -> [Finding] {
        let poison = snapshot.outcomes.indices.filter { snapshot.outcomes[$0] == PrefetchOutcome.poison.rawValue }
            .prefix(1000)
        guard !poison.isEmpty else { return [] }
        let kept = try await queue.results.details(of: batch, indices: Array(poison))
        let keep = snapshot.fields["details"]?.int ?? 100_000
        var found: [Finding] = []
        for index in poison where kept[index] == nil && snapshot.detailsKept < keep {
            found.append(finding("I6", "the URL with the index \(index) ended poison and has no detail"))
        }
        // Entries leave the list by command and by age: only recent ones can be required.
        let options = BatchOptions(encoded: snapshot.fields["options"]?.string ?? "{}")
        guard snapshot.isRunning, options.blacklist != .none, !options.retryFailed else {
            return found
        }
        // A batch older than its entries' lifetime may have lost some, and so may a list at its limit.
        let at = try ScriptRunner.time(try await queue.redis.read(queue.redis.clockCommands))
        let lapse = options.listingTTL.milliseconds(.poison, httpStatus: nil)
        let isOld = lapse > 0 && at - (snapshot.fields["created"]?.int ?? 0) > lapse
        let urls = kept.sorted { $0.key < $1.key }.map(\.value.url)
        guard !urls.isEmpty, !isOld, try await queue.failedURLs.limit().removed == 0 else { return found }
        let listed = try await queue.redis.read([
            ["SMISMEMBER", RedisArgument(queue.keys.failed)] + urls.map { RedisArgument($0) }
        ])
        for (url, isListed) in zip(urls, try listed[0].get().array ?? []) where isListed.int == 0 {
            found.append(finding("I6", "\(url) ended poison and is not on the blacklist"))
        }
        return found
    }
}

extension PrefetchJob {
    /// The job's name in the head of a payload, without decoding the rest.
    static func name(ofPayload payload: [UInt8]) -> String? {
        let words = payload.prefix(200).prefix { $0 != UInt8(ascii: "\n") }.split(separator: UInt8(ascii: " "))
        return words.count > 2 ? String(decoding: words[2], as: UTF8.self) : nil
    }
}

// MARK: - Records

extension BatchCheck {
    /// I7: every skipped URL has one record, and no other URL has one.
    func records(_ snapshot: BatchContents) -> [Finding] {
        var (damaged, strangers, missing) = (0, 0, 0)
        var first: Int?
        let chunks = (snapshot.outcomes.count + FailureRecord.chunk - 1) / FailureRecord.chunk
        for name in snapshot.records.keys where Int(name).map({ !(0..<chunks).contains($0) }) ?? true { strangers += 1 }
        for chunk in 0..<chunks {
            let start = chunk * FailureRecord.chunk
            let codes = snapshot.outcomes[start..<min(start + FailureRecord.chunk, snapshot.outcomes.count)]
            let bytes = snapshot.records[String(chunk)] ?? []
            guard !bytes.isEmpty || codes.contains(where: { $0 > 3 }) else { continue }
            let (records, isSound) = FailureRecord.decode(bytes)
            if !isSound { damaged += 1 }
            for position in records.keys where position >= codes.count || codes[start + position] <= 3 {
                strangers += 1
            }
            for (index, code) in zip(codes.indices, codes) where code > 3 && records[index - start] == nil {
                missing += 1
                first = first ?? index
            }
        }
        var found: [Finding] = []
        if damaged > 0 { found.append(finding("I7", "\(damaged) chunks of records are damaged")) }
        if strangers > 0 { found.append(finding("I7", "\(strangers) records are of URLs that were not skipped")) }
        if let first {
            found.append(finding("I7", "\(missing) skipped URLs have no record, the first has the index \(first)"))
        }
        return found
    }
}
