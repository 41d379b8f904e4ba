internal import Redis
internal import WebImage

/// Pushes a list onto a batch's Redis list, within the window, and seals the batch at the end.
///
/// Can be stopped and restarted at any time, by any process: Redis knows the number of pushed URLs, and returns it to a feeder that has
/// another. Only the jobs of one push are in memory.
package struct ListFeeder: Sendable {
    package enum End: Sendable, Equatable {
        /// Every URL is pushed and the batch is sealed.
        case sealed
        /// The batch is over: `done`, `cancelled` or `gone`.
        case closed(String)
    }

    package enum Wait: Sendable {
        /// The window is full: workers have to claim jobs.
        case window
        case memory
        /// As many shards as may be open wait for their last lines.
        case shards
    }

    private static let minCount = 4
    private static let maxJobs = 64

    private let queue: PrefetchQueue
    private let entries: BatchEntries
    private let name: String
    private let batch: String
    private let window: String
    private let jobSize: Int?
    /// Whether the list has grown since its batch was made or sealed.
    private let hasGrown: Bool
    /// Settles hits at once; nil: left to workers.
    private let hits: CacheHits?

    /// * `window`: `auto`, `all`, or the number of waiting jobs in Redis at which pushes wait; one push has up to 64. Unless it is `all`
    ///   they take at most 24 MiB there.
    /// * `jobSize`: URLs per job, 1 to 256; nil: a 64th of the list, so that a short list spreads over all workers, and at least 4: a job
    ///   costs Redis and its worker as much as ten URLs. Of a pipe a 64th of what has come, of another list that is not read
    ///   yet a 64th of what it probably has.
    package init(
        queue: PrefetchQueue, list: URLList, batch: String, window: String = "auto", jobSize: Int? = nil,
        hits: CacheHits? = nil
    ) {
        self.init(
            queue: queue, entries: BatchEntries(list), of: list.path, batch: batch, window: window, jobSize: jobSize,
            hits: hits)
    }

    /// * `of`: name of the entries' source, for messages.
    /// * `hasGrown`: whether the list has more lines than when its batch was made or sealed.
    package init(
        queue: PrefetchQueue, entries: BatchEntries, of name: String, batch: String, window: String = "auto",
        jobSize: Int? = nil, hasGrown: Bool = false, hits: CacheHits? = nil
    ) {
        self.hits = hits
        self.hasGrown = hasGrown
        self.queue = queue
        self.entries = entries
        self.name = name
        self.batch = batch
        self.window = window
        self.jobSize = jobSize
    }

    /// Of a job that begins with the URL of an index.
    private func jobSize(at index: Int) -> Int {
        let usual = max(Self.minCount, ((entries.total ?? max(index, entries.estimate)) + 63) / 64)
        return min(PrefetchJob.maxCount, max(1, jobSize ?? usual))
    }

    /// Feeds until the batch is sealed or over.
    /// * `pushed`: called after every push with the number of pushed URLs.
    /// * `waiting`: called once when the window or Redis is full or too many shards are open, and again when the cause changes.
    /// Throws `redisUnavailable` after the queue's timeout, `unreadableList` if the file is gone or has changed, `stopped` if the task is
    /// cancelled. The batch stays open and can be resumed.
    package func feed(
        pushed: @Sendable (Int) -> Void = { _ in }, waiting: @Sendable (Wait) -> Void = { _ in }
    ) async throws(PrefetchError) -> End {
        var from = 0
        let identity = hits == nil ? nil : try await identity()
        // Jobs per push: fewer while Redis has little room.
        var most = Self.maxJobs
        var told = ContinuousClock.now
        while true {
            var push = PendingPush(offset: from)
            var result: QueueBatches.PushResult?
            var said: Wait?
            func offer() async throws(PrefetchError) -> Bool {
                while push.count > 0 {
                    guard !Task.isCancelled else { throw Self.stopped }
                    let part = push.first(most, before: entries.end(at: push.offset))
                    guard part.count > 0 else {
                        if said != .shards { waiting(.shards) }
                        said = .shards
                        guard let other = try await waitForShards(at: push.offset) else { continue }
                        result = other
                        return false
                    }
                    switch try await send(part.offset, part.count, part.payloads(), progress(to: part)) {
                    case .result(.pushed(let count)):
                        try await settleHits(of: part.jobs, in: identity)
                        pushed(count)
                        push.drop(part)
                        most = min(Self.maxJobs, 2 * most)
                    case .wait(.memory) where part.jobs.count > 1:
                        // A smaller push may fit, so that a nearly full Redis does not refuse the same push forever.
                        most = part.jobs.count / 2
                    case .wait(let wait):
                        if said != wait { waiting(wait) }
                        said = wait
                        try await waitForRoom(at: push.offset, wait)
                    case .result(.at(let count)) where count == part.offset + part.count:
                        try await settleHits(of: part.jobs, in: identity)
                        push.drop(part)
                    case .result(let other):
                        result = other
                        return false
                    }
                }
                return true
            }
            do throws(PrefetchError) {
                try await entries.feed(from: from) { entry, end async throws(PrefetchError) in
                    push.append(entry, end, batch: batch, jobSize: jobSize(at: push.offset + push.count))
                    return push.isLarge ? try await offer() : true
                } waiting: { () async throws(PrefetchError) in
                    if push.count > 0 { return try await offer() }
                    guard ContinuousClock.now - told > .seconds(1) else { return true }
                    told = .now
                    // Says that the feeder lives, and asks whether the batch does.
                    guard case .result(let other) = try await send(push.offset, 0, []), other != .pushed(push.offset)
                    else { return true }
                    result = other
                    return false
                }
            } catch {
                // What comes before a line that is none of a list is queued.
                if error.kind == .unreadableList { _ = try await offer() }
                throw error
            }
            if result == nil, push.count > 0 { _ = try await offer() }
            if result == nil {
                let (count, read) = (push.offset, entries.read)
                if let total = entries.total, count != total { throw changed(count: count, before: total) }
                result = try await bridgingErrors { () async throws(RedisError) in
                    try await queue.batches.seal(
                        batch: batch, total: count, length: read.length, hash: read.hash, files: entries.files)
                }
                if case .pushed = result {
                    entries.finish()
                    return .sealed
                }
            }
            switch result {
            case .at(let count): from = count
            case .closed(let state): return .closed(state)
            default: return .sealed
            }
        }
    }

    /// Polls without jobs until there is room: sending the same quarter of a MiB repeatedly would cost Redis more than all accepted pushes.
    /// At growing intervals: a full window is work for a second or more, or a stalled queue.
    /// * `wait`: also returns if the cause changes.
    private func waitForRoom(at offset: Int, _ wait: Wait) async throws(PrefetchError) {
        var milliseconds = 20
        while true {
            try await pause(milliseconds)
            milliseconds = min(100, milliseconds + 20)
            if case .wait(let now) = try await send(offset, 0, []), now == wait { continue }
            return
        }
    }

    /// Waits until more of the list may be queued; returns what has happened to the batch meanwhile.
    private func waitForShards(at offset: Int) async throws(PrefetchError) -> QueueBatches.PushResult? {
        var milliseconds = 20
        while entries.end(at: offset) <= offset {
            try await pause(milliseconds)
            milliseconds = min(100, milliseconds + 20)
            // Says that the feeder lives, and asks whether the batch does.
            if case .result(let other) = try await send(offset, 0, []), other != .pushed(offset) { return other }
        }
        return nil
    }

    private enum Answer {
        case wait(Wait)
        case result(QueueBatches.PushResult)
    }

    /// What an open batch notes of its list with these jobs.
    private func progress(to part: PendingPush) -> QueueBatches.ListProgress {
        var progress = QueueBatches.ListProgress()
        progress.hasGrown = hasGrown
        guard let hash = entries.digest(upTo: part.end) else { return progress }
        (progress.estimate, progress.length, progress.hash) = (entries.estimate, part.end, hash)
        progress.mark = entries.mark
        return progress
    }

    private func send(
        _ offset: Int, _ count: Int, _ jobs: [[UInt8]],
        _ list: QueueBatches.ListProgress = QueueBatches.ListProgress()
    ) async throws(PrefetchError) -> Answer {
        do throws(RedisError) {
            let result = try await queue.batches.push(
                batch: batch, offset: offset, window: window, count: count, list: list, jobs: jobs)
            return result == .full ? .wait(.window) : .result(result)
        } catch {
            // A full Redis refuses PUSH and still drains: the same back-pressure as a full window.
            if error.code == .outOfMemory { return try await noteFullAndCheckState() }
            throw PrefetchError(error)
        }
    }

    /// Does what a refused PUSH could not: notes that the feeder is alive, and checks whether the batch has ended, also by its deadline.
    private func noteFullAndCheckState() async throws(PrefetchError) -> Answer {
        let state = try await bridgingErrors { () async throws(RedisError) in
            try await queue.batches.noteFull(batch: batch)
        }
        return state == BatchStatus.State.running.rawValue ? .wait(.memory) : .result(.closed(state ?? "gone"))
    }

    private func settleHits(of jobs: [PrefetchJob], in batch: BatchIdentity?) async throws(PrefetchError) {
        guard let hits, let batch else { return }
        try await bridgingErrors { () async throws(RedisError) in try await hits.settle(jobs, of: batch, in: queue) }
    }

    /// Nil if Redis has no batch of this id.
    private func identity() async throws(PrefetchError) -> BatchIdentity? {
        try await bridgingErrors { () async throws(RedisError) in
            try await queue.batches.status(of: batch)?.identity
        }
    }

    private func changed(count: Int, before: Int) -> PrefetchError {
        PrefetchError(
            .unreadableList, "\(name) changed while it was read: \(count) URLs, \(before) before",
            hint: "submit the new list as a batch of its own; cancel this one: prefetch-coord cancel \(batch)")
    }

    private func pause(_ milliseconds: Int) async throws(PrefetchError) {
        do { try await Task.sleep(for: .milliseconds(milliseconds)) } catch {
            throw Self.stopped
        }
    }

    private static let stopped = PrefetchError(.stopped, "stopped before the whole list was queued")
}

private struct PendingPush {
    private(set) var offset: Int
    private(set) var count = 0
    private(set) var jobs: [PrefetchJob] = []
    /// The byte of the list behind the last entry of each job.
    private var ends: [Int] = []
    private var bytes = 0
    private var jobBytes = 0

    init(offset: Int) { self.offset = offset }

    /// Large enough for a round trip: 64 jobs or a quarter of a MiB.
    var isLarge: Bool { jobsAreFull && (jobs.count >= 64 || bytes >= 1 << 18) }
    private var jobsAreFull = false

    /// The byte of the list behind its last entry.
    var end: Int { ends.last ?? 0 }

    mutating func append(_ entry: PrefetchJob.Entry, _ end: Int, batch: String, jobSize: Int) {
        if jobs.isEmpty || jobsAreFull {
            var job = PrefetchJob(batch: batch, base: offset + count, entries: [])
            job.entries.reserveCapacity(jobSize)
            jobs.append(job)
            ends.append(end)
            jobBytes = 0
        }
        ends[ends.count - 1] = end
        jobs[jobs.count - 1].entries.append(entry)
        count += 1
        bytes += entry.byteCount
        jobBytes += entry.byteCount
        jobsAreFull = jobs[jobs.count - 1].entries.count == jobSize || jobBytes >= PrefetchJob.fullBytes
    }

    /// Its first jobs, `most` at most, that begin before an index.
    func first(_ most: Int, before end: Int) -> PendingPush {
        if jobs.count <= most, offset + count <= end { return self }
        var part = PendingPush(offset: offset)
        for (job, place) in zip(jobs, ends).prefix(most) where offset + part.count < end {
            part.jobs.append(job)
            part.ends.append(place)
            part.count += job.entries.count
        }
        return part
    }

    /// Removes pushed jobs; if none are left only the offset remains.
    mutating func drop(_ part: PendingPush) {
        guard part.jobs.count < jobs.count else { return self = PendingPush(offset: offset + count) }
        jobs.removeFirst(part.jobs.count)
        ends.removeFirst(part.jobs.count)
        offset += part.count
        count -= part.count
    }

    func payloads() -> [[UInt8]] { jobs.map { $0.encoded() } }
}
