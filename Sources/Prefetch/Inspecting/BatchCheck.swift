internal import Redis
internal import WebImage

/// The invariants of one batch, checked on what Redis has at one moment. Changes nothing, and workers may go on meanwhile.
///
/// - I1: finished = outcomes that are not open = the sum of the counts of the outcomes; skipped likewise.
/// - I2: while a batch runs, every open URL that is pushed is in exactly one job, and a waiting job can be claimed.
/// - I3: a batch is done exactly where it is sealed and every URL ended; then nothing of its run is left.
/// - I4: claims belong to registered workers, which know of them; the workers' counts add up to the batch's.
/// - I5, that every image is in the cache, needs the cache and the list: `prefetch-coord fsck --cache` looks.
/// - I6: deaths are counted of jobs that exist, those under the mark are at most all of them; a `poison` URL has its detail, and while
///   the batch runs it is on the list of failed URLs, where the policy lists.
/// - I7: every URL that was skipped has one record of its status, tries and time, and no other URL has one.
/// - Type: every key of it is of the type it must be. Where one is not, nothing else is looked at.
package struct BatchCheck: Sendable {
    /// Something that does not agree.
    package struct Finding: Sendable, Equatable {
        package var batch: String
        /// `I1` to `I7`, or `Type`.
        package var invariant: String
        /// One sentence.
        package var message: String

        package init(batch: String, invariant: String, message: String) {
            self.batch = batch
            self.invariant = invariant
            self.message = message
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

    /// The checks of several batches. Who has claims is looked for once for all of them, since that goes through all keys of Redis; a
    /// worker that joined since is looked for again.
    /// - Throws: what talking to Redis throws.
    package static func checks(of batches: [String], queue: PrefetchQueue) async throws(PrefetchError) -> [BatchCheck] {
        do throws(RedisError) {
            let owners = batches.count > 1 ? try await BatchSnapshot.owners(queue) : nil
            return batches.map { BatchCheck(queue: queue, batch: $0, owners: owners) }
        } catch {
            throw PrefetchError(error)
        }
    }

    /// What does not agree, in the order of the invariants; empty where all is well.
    /// - Throws: `notFound` where Redis has no such batch; what talking to Redis throws.
    package func run() async throws(PrefetchError) -> [Finding] {
        let snapshot: BatchSnapshot?
        var listed: [Finding] = []
        let poison: [Finding]
        do throws(RedisError) {
            let owners = if let owners { owners } else { try await BatchSnapshot.owners(queue) }
            let wrong = try await queue.wrongKeys(of: batch) + queue.wrongKeys(workers: owners)
            guard wrong.isEmpty else { return wrong.map { finding("Type", $0.sentence(queue.keys)) } }
            snapshot = try await BatchSnapshot.read(batch, queue: queue, owners: owners)
            if let snapshot { listed = try await lists(snapshot) }
            poison = if let snapshot { try await poisonings(snapshot) } else { [] }
        } catch {
            throw PrefetchError(error)
        }
        guard let snapshot else { throw PrefetchError(.notFound, "there is no batch '\(batch)'") }
        return counts(snapshot) + jobs(snapshot) + listed + ending(snapshot) + workers(snapshot) + poison
            + records(snapshot)
    }

    func finding(_ invariant: String, _ message: String) -> Finding {
        Finding(batch: batch, invariant: invariant, message: message)
    }

    private func counts(_ snapshot: BatchSnapshot) -> [Finding] {
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
        // Where Redis lost its tail, and with it the end of the list, workers still report what they had of that: it counts, and is
        // pushed again with the rest.
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

    private func jobs(_ snapshot: BatchSnapshot) -> [Finding] {
        guard snapshot.isRunning else { return [] }
        var found: [Finding] = []
        let pushed = snapshot.count("pushed")
        let identity = snapshot.identity(of: batch)
        // Of the URLs behind the last outcome and the last job nothing is known, however many they are said to be.
        var places = [UInt8](repeating: 0, count: min(pushed, snapshot.outcomes.count))
        func place(_ payload: [UInt8], _ whose: String) {
            guard let job = PrefetchJob(payload), job.batch == batch, job.base + job.entries.count <= pushed,
                job.base + job.entries.count <= BatchStatus.mostURLs
            else {
                found.append(finding("I2", "\(whose) is no job of this batch"))
                return
            }
            places += repeatElement(0, count: max(0, job.base + job.entries.count - places.count))
            for index in job.base..<(job.base + job.entries.count) where places[index] < 255 { places[index] += 1 }
        }
        for payload in snapshot.jobs { place(payload, "an element of the job list") }
        for (worker, claims) in snapshot.owned.sorted(by: { $0.key < $1.key }) {
            // Jobs of an earlier batch of this name are nobody's: their reports are refused.
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
        let mayRun = snapshot.fields["paused"]?.string != "1" && !snapshot.isHeld && !snapshot.jobs.isEmpty
        if snapshot.timesReady != (mayRun ? 1 : 0) {
            found.append(
                finding(
                    "I2",
                    "\(snapshot.jobs.count) jobs wait, and the batch is \(snapshot.timesReady) times in the ready lists"
                ))
        }
        if snapshot.bells != (snapshot.isAnyReady && !snapshot.isQueuePaused ? 1 : 0) {
            found.append(
                finding(
                    "I2",
                    "the bell has \(snapshot.bells) elements while \(snapshot.isAnyReady ? "a batch is" : "no batch is") ready"
                        + (snapshot.isQueuePaused ? " and the queue is paused" : "")
                ))
        }
        return found
    }

    private func ending(_ snapshot: BatchSnapshot) -> [Finding] {
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
            found.append(finding("I3", "every URL ended, but the batch is not done"))
        }
        if !snapshot.isRunning && !snapshot.jobs.isEmpty {
            found.append(finding("I3", "\(state), but \(snapshot.jobs.count) jobs are left in its list"))
        }
        if !snapshot.isRunning && snapshot.timesReady > 0 {
            found.append(finding("I3", "\(state), but in a ready list"))
        }
        if snapshot.isInRunning != snapshot.isRunning {
            found.append(
                finding("I3", "\(state), and \(snapshot.isInRunning ? "" : "not ")in the set of running batches"))
        }
        return found
    }

    private func workers(_ snapshot: BatchSnapshot) -> [Finding] {
        var found: [Finding] = []
        for worker in snapshot.owned.keys.sorted() where !snapshot.workers.contains(worker) {
            found.append(
                finding("I4", "\(worker) has \(snapshot.owned[worker]?.count ?? 0) claims and is not registered"))
        }
        let identity = snapshot.identity(of: batch)
        for (worker, names) in snapshot.unheld.sorted(by: { $0.key < $1.key }) {
            let lost = (snapshot.owned[worker] ?? []).filter {
                names.contains($0.name) && identity.range(ofClaim: $0.name) != nil
            }
            guard let first = lost.map(\.name).min() else { continue }
            found.append(
                finding("I4", "\(worker) does not know of \(lost.count) claims that it has, the first is \(first)"))
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

extension BatchSnapshot {
    var isRunning: Bool { fields["state"]?.string == "running" }

    func identity(of batch: String) -> BatchIdentity {
        BatchIdentity(id: batch, nonce: fields["nonce"]?.string ?? "")
    }

    func number(_ name: String) -> Int { fields[name]?.int ?? 0 }

    /// The same where less than nothing is none.
    func count(_ name: String) -> Int { max(0, number(name)) }
}
