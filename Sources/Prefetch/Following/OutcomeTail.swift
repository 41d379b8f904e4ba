internal import Redis
internal import WebImage

/// Polls a batch and returns the URLs that ended since the last poll, like `tail -f` for a file.
///
/// It polls every 50 ms for the first two seconds, then every 200 ms; more often at the start and near the end, less often if a poll takes
/// long. A poll
/// reads the batch's hash; outcomes are read only if that has changed, and only pieces with unreported URLs. One caller at a time.
package actor OutcomeTail {
    package enum Start: Sendable {
        /// With new outcomes; earlier ones are only counted.
        case present
        /// With the first URL that ended.
        case beginning
    }

    package enum Notice: Sendable, Equatable {
        /// Redis is unreachable; polling waits for it. Sent once.
        case redisAway(String)
        case redisBack
    }

    package struct News: Sendable {
        /// As read before the outcomes.
        package var status: BatchStatus
        /// URLs that ended since the last poll, possibly none.
        package var settled: [SettledURL]
        /// URLs that have ended, including these, and those without an image. Only if outcomes are read.
        package var finished: Int, skipped: Int
        /// Whether the batch is over and everything was reported.
        package var isEnd: Bool
    }

    /// Outcomes are read again when this changes.
    private struct Mark: Equatable {
        var state: BatchStatus.State
        var pushed, finished, last: Int

        init(_ status: BatchStatus) {
            state = status.state
            pushed = status.pushed
            finished = status.counts.finished
            last = status.last
        }
    }

    /// Default timeout while Redis refuses access after it had granted it: 90 s.
    package static let refusalTimeout = Duration.seconds(90)

    /// Default timeout while the batch is said to be broken, which the next healing of the queue may take back: two minutes.
    package static let brokenTimeout = Duration.seconds(120)

    private static let group = 4

    private let queue: PrefetchQueue
    private let id: String
    private let readsOutcomes: Bool
    private let waitLimit: Duration?
    private let refusalTimeout: Duration, brokenTimeout: Duration
    private var brokenSince: ContinuousClock.Instant?
    /// Whether Redis has ever replied.
    private var hasRead = false
    private let notice: @Sendable (Notice) -> Void
    private var copy = OutcomeCopy()
    private var isPrimed: Bool
    private var status: BatchStatus?
    private var mark: Mark?
    /// Pieces of this poll still to be read.
    private var pieces: ArraySlice<Range<Int>> = []
    private var cost = Duration.zero
    private var futilePolls = 0
    private var isOver = false
    private let began = ContinuousClock.now

    /// * `readsOutcomes`: false if only counts are wanted.
    /// * `waitLimit`: timeout while Redis is unreachable; nil = until the task is cancelled.
    /// * `refusalTimeout`: timeout while Redis refuses access after it has replied once: its password or rights may be changing.
    /// * `brokenTimeout`: timeout while the batch cannot end, see `BatchStatus.broken`.
    package init(
        queue: PrefetchQueue, batch: String, from start: Start, readsOutcomes: Bool = true, waitLimit: Duration? = nil,
        refusalTimeout: Duration = OutcomeTail.refusalTimeout, brokenTimeout: Duration = OutcomeTail.brokenTimeout,
        notice: @escaping @Sendable (Notice) -> Void = { _ in }
    ) {
        self.queue = PrefetchQueue(
            ScriptRunner(connection: queue.connection, keys: queue.keys, waitLimit: .zero))
        id = batch
        self.readsOutcomes = readsOutcomes
        self.waitLimit = waitLimit
        self.refusalTimeout = refusalTimeout
        self.brokenTimeout = brokenTimeout
        self.notice = notice
        isPrimed = start == .beginning || !readsOutcomes
    }

    /// Waits for the next poll and returns its news, possibly none. Nil after the end, and if the task is cancelled.
    /// - Throws: `notFound` if Redis does not have the batch (any more); `configuration` if it stays broken; `redisUnavailable` after `waitLimit`; `refused` if Redis has never
    ///   replied, or after `refusalTimeout`.
    package func next() async throws(PrefetchError) -> News? {
        guard !isOver else { return nil }
        do throws(PrefetchError) {
            return try await poll()
        } catch {
            isOver = true
            if error.kind == .stopped { return nil }
            throw error
        }
    }

    private func poll() async throws(PrefetchError) -> News {
        while true {
            let status = try await reading()
            var settled: [SettledURL] = []
            if !pieces.isEmpty {
                let group = pieces.prefix(Self.group)
                settled = try await read(Array(group), of: status)
                pieces = pieces.dropFirst(group.count)
            }
            if !isPrimed {
                guard pieces.isEmpty else { continue }
                isPrimed = true
                settled = []
            }
            isOver = try isComplete(status)
            return News(
                status: status, settled: settled, finished: copy.finished, skipped: copy.skipped, isEnd: isOver)
        }
    }

    /// The batch in this poll: read anew if all news of the last poll were returned.
    private func reading() async throws(PrefetchError) -> BatchStatus {
        if let status, !pieces.isEmpty { return status }
        if status != nil { try await pause() }
        let id = id
        let found = try await redis { queue async throws(RedisError) in try await queue.batches.status(of: id) }
        guard let found else {
            throw PrefetchError(
                .notFound, "Redis no longer has the batch \(id)", hint: "was Redis emptied? submit the list again")
        }
        status = found
        try expectToEnd(found)
        // The state was read first: outcomes of a batch that is over, read after it, are final.
        if readsOutcomes, Mark(found) != mark || found.state != .running {
            let key = queue.keys.outcomes(id)
            let length = try await redis { queue async throws(RedisError) in
                try await queue.redis.read([["STRLEN", RedisArgument(key)]])[0].get().int ?? 0
            }
            // An open batch may have got URLs since, which are not in the total of this poll.
            pieces = copy.openPieces(below: found.state == .cancelled ? found.total : min(length, found.total))[...]
            mark = Mark(found)
            cost = .zero
        }
        return found
    }

    private func expectToEnd(_ status: BatchStatus) throws(PrefetchError) {
        guard let broken = status.broken else { return brokenSince = nil }
        let since = brokenSince ?? .now
        brokenSince = since
        guard .now - since >= brokenTimeout else { return }
        throw PrefetchError(
            .configuration, "\(id) cannot end: \(broken)",
            hint: "remove it with prefetch-coord rm --force \(id), then submit or run its list again")
    }

    private func read(_ ranges: [Range<Int>], of status: BatchStatus) async throws(PrefetchError) -> [SettledURL] {
        let key = queue.keys.outcomes(id)
        let began = ContinuousClock.now
        let replies = try await redis { queue async throws(RedisError) in
            var replies: [[UInt8]] = []
            for reply in try await queue.redis.read(
                ranges.map {
                    [
                        "GETRANGE", RedisArgument(key), RedisArgument($0.lowerBound),
                        RedisArgument($0.upperBound - 1),
                    ]
                })
            {
                replies.append(try reply.get().bytes ?? [])
            }
            return replies
        }
        cost += ContinuousClock.now - began
        var settled: [SettledURL] = []
        for (range, codes) in zip(ranges, replies) {
            settled += try copy.learn(codes, of: range, openAs: status.state == .cancelled ? .cancelled : nil)
        }
        return settled
    }

    private func isComplete(_ status: BatchStatus) throws(PrefetchError) -> Bool {
        guard status.state != .running, pieces.isEmpty else { return false }
        guard readsOutcomes, copy.finished < status.total else { return true }
        // Redis restarted between the two readings and lost the end, which normally comes again.
        futilePolls += 1
        guard futilePolls < 20 else {
            throw PrefetchError(
                .software,
                "\(id) is \(status.state.rawValue), but \(status.total - copy.finished) URLs have no outcome",
                hint: "check it: prefetch-coord fsck \(id)")
        }
        return false
    }

    private func pause() async throws(PrefetchError) {
        let watched = ContinuousClock.now - began
        // An eighth of the time so far at the start: a batch of a few URLs ends within milliseconds.
        var interval: Duration = watched < .seconds(2) ? min(.milliseconds(50), watched / 8) : .milliseconds(200)
        interval = max(.milliseconds(5), interval)
        if let status, status.isSealed, status.counts.finished > 0, status.elapsed > 0 {
            // A tenth of the estimated rest, so that the end of a short batch is seen without delay.
            let rest = Double(status.total - status.counts.finished) / Double(status.counts.finished) * status.elapsed
            interval = min(interval, max(.milliseconds(5), .seconds(min(1, rest / 10))))
        }
        try await sleep(max(interval, cost * 10))
    }

    private func sleep(_ duration: Duration) async throws(PrefetchError) {
        do { try await Task.sleep(for: duration) } catch {
            throw PrefetchError(.stopped, "stopped following \(id)")
        }
    }

    /// Calls Redis, and waits while it is unreachable.
    private func redis<Success: Sendable>(
        _ body: @Sendable (PrefetchQueue) async throws(RedisError) -> Success
    ) async throws(PrefetchError) -> Success {
        let began = ContinuousClock.now
        var failures = 0
        var hasReported = false
        while true {
            do throws(RedisError) {
                let result = try await body(queue)
                hasRead = true
                if hasReported { notice(.redisBack) }
                return result
            } catch {
                let waited = ContinuousClock.now - began
                guard !Task.isCancelled, isRetryable(error, after: waited) else { throw PrefetchError(error) }
                failures += 1
                // A single cut connection recovers at once and is not reported.
                if !hasReported, failures > 1 || waited > .seconds(1) || !error.isTransient {
                    hasReported = true
                    notice(.redisAway(error.message))
                }
                try await sleep(min(.seconds(1), .milliseconds(25 << min(failures, 6))))
            }
        }
    }

    /// Whether waiting may help against an error that has lasted this long.
    private func isRetryable(_ error: RedisError, after waited: Duration) -> Bool {
        if error.code == .refused { return hasRead && waited < refusalTimeout }
        return error.isTransient && waitLimit.map { waited < $0 } ?? true
    }
}
