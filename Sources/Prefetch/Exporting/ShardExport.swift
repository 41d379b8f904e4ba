internal import Redis
package import WebImage

/// Puts the lines of a list into shards: all of them, or each shard as soon as its last line has ended.
package struct ShardExport: Sendable {
    private static let pollTime = Duration.milliseconds(500)
    /// The first pause after something was written; each is twice as long as the one before.
    private static let firstPause = Duration.milliseconds(20)
    /// Outcomes that are read at a time to see whether they are there.
    private static let step = 4_096
    /// Shards that are open: lines behind them are queued when one of them is written.
    package static let mostOpen = 64
    /// How long the last lines of open shards hold up the list.
    package static let slowTimeout = Duration.seconds(300)
    /// A third of what a run may be silent at least.
    private static let renewalTime = Duration.milliseconds(QueueShards.usualLease / 3)
    /// The last lines of shards are at most one line in so many.
    private static let lastShare = 10

    private let chain: BatchChain
    private let queue: PrefetchQueue
    private let export: BatchExport
    private let shards: ImageShards
    private let form: @Sendable ([TypedColumn]) throws(PrefetchError) -> ShardForm
    /// Nil: it owns none.
    private let owned: OwnedShards?
    private let hashes: ImageHashes?

    /// * `form`: what is said of lines with these columns.
    /// * `owner`: a run, which writes only shards that it owns in the queue, and leaves those as they are that are whole by their stats; nil:
    ///   of all shards the files are compared.
    package init(
        _ chain: BatchChain, queue: PrefetchQueue, export: BatchExport, into shards: ImageShards, from cache: DiskCache,
        owner: ShardOwner?, form: @escaping @Sendable ([TypedColumn]) throws(PrefetchError) -> ShardForm
    ) {
        (self.chain, self.queue, self.export, self.shards, self.form) = (chain, queue, export, shards, form)
        owned = owner.map { OwnedShards($0, of: chain.root.identity, from: cache, queue) }
        hashes = shards.options.added.contains(.perceptualHash) ? ImageHashes() : nil
    }

    /// Writes all shards; returns what they say of lines.
    /// * `waiting`: called with the name of a shard that another run owns, once for each.
    /// - Throws: what ``ImageShards`` and `form` throw, `inputOutput` where the cache cannot be read, `stopped` where the task is cancelled.
    package func writeAll(waiting: (String) -> Void = { _ in }) async throws(PrefetchError) -> ShardForm {
        do throws(PrefetchError) {
            let form = try form(try await export.columns())
            try await writeAll(form, waiting)
            try await atPlace { shards throws(PrefetchError) in try shards.checkStored() }
            await owned?.leave()
            return form
        } catch {
            await owned?.leave()
            throw error
        }
    }

    private func writeAll(_ form: ShardForm, _ waiting: (String) -> Void) async throws(PrefetchError) {
        var layout = shards.options.layout
        let list = ListExtent(entries: chain.root.total, files: chain.root.listFiles, hasEnded: true)
        let entries = try reader()
        var cursor = export.results.cursor()
        _ = try await owned?.count([])
        while let shard = layout.next(of: list) {
            var isWaiting = false
            while true {
                var behind = cursor
                if try await isThere(shard, images: try await behind.pass(shard.entries.count), form.columns) {
                    cursor = behind
                    break
                }
                behind = cursor
                if try await write(shard, layout, form, entries, &behind) {
                    cursor = behind
                    break
                }
                if !isWaiting { waiting(ShardLayout.name(shard.number)) }
                isWaiting = true
                do { try await Task.sleep(for: Self.pollTime) } catch { throw BatchExport.stopped }
            }
        }
    }

    /// Whether a run need not write a shard.
    private func isThere(
        _ shard: ShardLayout.Shard, images: Int, _ columns: [TypedColumn]?
    ) async throws(PrefetchError) -> Bool {
        guard let owned else { return false }
        let bytes = try await atPlace { shards throws(PrefetchError) in
            try shards.has(shard, images: images, columns: columns) ? try shards.bytes(of: shard.number) : nil
        }
        guard let bytes else { return false }
        _ = try await owned.record(shard.number, bytes: bytes, isFound: true)
        return true
    }

    /// Puts the shard that was begun, which may take longer than the lease.
    private func put(_ shard: Int) async throws(PrefetchError) -> Int {
        let renewal = owned.map { owned in
            Task {
                while (try? await Task.sleep(for: Self.renewalTime)) != nil { _ = try? await owned.keep(shard) }
            }
        }
        defer { renewal?.cancel() }
        return try await atPlace { shards throws(PrefetchError) in try shards.put() }
    }

    /// Asks the place of shards, on a thread that may block.
    private func atPlace<Result: Sendable>(
        _ body: @escaping @Sendable (ImageShards) throws(PrefetchError) -> Result
    ) async throws(PrefetchError) -> Result {
        let result: Swift.Result<Result, PrefetchError> = await withTaskCancellationHandler {
            do throws(PrefetchError) {
                return .success(try await export.run { [shards] () throws(PrefetchError) in try body(shards) })
            } catch {
                return .failure(error)
            }
        } onCancel: {
            shards.cancel()
        }
        return try result.get()
    }

    /// Writes each shard that a run owns once its lines have ended, until all are written or the task is cancelled: the columns of its
    /// table are those of the lines so far.
    ///
    /// The list waits while as many shards are open as may be. If for some time only their last lines are missing, which wait for slow
    /// hosts, these end without an image.
    /// * `list`: what the batch, which has no retries, is fed from; nil: it was fed before.
    /// * `limit`: sets how far the list is fed.
    /// * `left`: called with the number of lines that are ended so.
    /// - Throws: as ``writeAll(waiting:)``.
    package func follow(
        _ list: ListStream?, _ limit: FeedLimit.Writer, mostOpen: Int = Self.mostOpen,
        timeout: Duration = Self.slowTimeout, left: (Int) -> Void = { _ in }
    ) async throws(PrefetchError) {
        guard let owned else { return }
        let fed = ListExtent(entries: chain.root.total, files: chain.root.listFiles, hasEnded: true)
        var layout = shards.options.layout
        var open: [OpenShard] = []
        let entries = try reader()
        var columns = ListColumns()
        var known = 0
        var wait = SlowWait(timeout)
        var pause = Self.firstPause
        defer { list?.limits.set(nil, by: limit) }
        while true {
            let extent = list.map { ListExtent($0.reading) } ?? fed
            while let shard = layout.next(of: extent) {
                open.append(OpenShard(shard: shard))
                known = shard.entries.upperBound
            }
            let rest = try await writeEnded(open.prefix(mostOpen), owned, layout, &columns, entries)
            let hasWritten = rest.count < min(open.count, mostOpen)
            open = rest + open.dropFirst(mostOpen)
            if let list {
                let end =
                    open.count < mostOpen
                    ? known + (mostOpen - open.count) * shards.options.perShard
                    : open[mostOpen - 1].shard.entries.upperBound
                list.limits.set(end, by: limit)
                do throws(PrefetchError) {
                    let isReached = list.limits.isReached
                    if let lines = try await lastLines(of: open.prefix(mostOpen), &wait, isReached: isReached) {
                        try await leave(before: end)
                        left(lines)
                    }
                } catch {
                    if error.kind != .redisUnavailable { throw error }
                }
            }
            if Task.isCancelled || open.isEmpty && extent.hasEnded { return }
            // Of a batch that goes on most are there.
            if hasWritten, !open.isEmpty {
                pause = Self.firstPause
                continue
            }
            do { try await Task.sleep(for: pause) } catch { return }
            pause = min(Self.pollTime, pause * 2)
        }
    }

    /// A shard some lines of which may be open.
    private struct OpenShard {
        let shard: ShardLayout.Shard
        /// Those before this one have ended.
        var ended = 0
    }

    /// How often in a row open shards were seen to wait for the last lines of slow hosts: time alone would count a pause, or a machine
    /// that sleeps.
    private struct SlowWait {
        private static let mostTimes = 10

        private let interval: Duration
        private var times = 0
        private var looked: ContinuousClock.Instant?

        init(_ timeout: Duration) { interval = timeout / Self.mostTimes }

        mutating func end() { (times, looked) = (0, nil) }

        /// Whether it is time to look again.
        mutating func looks() -> Bool {
            guard looked.map({ .now - $0 >= interval }) != false else { return false }
            looked = .now
            return true
        }

        /// - Returns: whether it was seen often enough.
        mutating func take(_ isSlow: Bool) -> Bool {
            times = isSlow ? times + 1 : 0
            guard times > Self.mostTimes else { return false }
            end()
            return true
        }
    }

    /// How many lines of open shards are missing; nil unless the list has waited long enough for lines of slow hosts alone.
    private func lastLines(
        of open: ArraySlice<OpenShard>, _ wait: inout SlowWait, isReached: Bool
    ) async throws(PrefetchError) -> Int? {
        guard isReached else {
            wait.end()
            return nil
        }
        guard wait.looks() else { return nil }
        var (lines, missing) = (0, 0)
        for shard in open {
            let codes = try await outcomes(shard.shard.entries)
            lines += shard.shard.entries.count
            // What is not queued yet has none.
            missing += shard.shard.entries.count - codes.count { $0 != 0 }
        }
        let areLast = missing * Self.lastShare <= lines
        let isSlow = areLast ? try await waitsForHosts() : false
        return wait.take(isSlow) ? missing : nil
    }

    /// Whether limits of single hosts hold the workers: no pause, and no fault of this machine.
    private func waitsForHosts() async throws(PrefetchError) -> Bool {
        let snapshot = try await bridgingErrors { () async throws(RedisError) in
            try await queue.views.snapshot(of: chain.root.id)
        }
        return snapshot.flatMap { RunLimit(workers: $0.workers, batches: [$0.status]) }?.cause == .politeness
    }

    private func leave(before end: Int) async throws(PrefetchError) {
        try await bridgingErrors { () async throws(RedisError) in
            try await queue.control.leave(chain.root.id, before: end)
        }
    }

    private func outcomes(_ range: Range<Int>) async throws(PrefetchError) -> [UInt8] {
        do throws(RedisError) { return try await queue.results.outcomes(of: chain.root.id, range: range) } catch {
            throw PrefetchError(error)
        }
    }

    /// Writes those of open shards whose lines have ended; returns the others. Where Redis is away, all wait for it.
    private func writeEnded(
        _ open: ArraySlice<OpenShard>, _ owned: OwnedShards, _ layout: ShardLayout, _ columns: inout ListColumns,
        _ entries: EntryReader
    ) async throws(PrefetchError) -> [OpenShard] {
        var rest: [OpenShard] = []
        var others = open
        do throws(PrefetchError) {
            let lines = try await owned.count(open.map { ($0.shard.number, $0.shard.entries, $0.ended) })
            for (var shard, lines) in zip(open, lines) {
                others.removeFirst()
                // What can be reached of it is written at the end.
                if lines == .elsewhere { continue }
                if case .ended(let count) = lines { shard.ended = count }
                rest.append(shard)
                if lines == .ended(shard.shard.entries.count),
                    try await write(shard.shard, layout, &columns, entries)
                {
                    rest.removeLast()
                }
            }
        } catch {
            if error.kind != .redisUnavailable { throw error }
        }
        return rest + others
    }

    /// - Throws: `notFound`, `unreadableList`.
    private func reader() throws(PrefetchError) -> EntryReader {
        guard let reader = try export.results.entries.reader() else {
            throw PrefetchError(
                .notFound, "\(chain.root.id) retries a batch that Redis no longer has",
                hint: "submit the lines again that are still wanted")
        }
        return reader
    }

    /// Writes a shard of a batch without retries, unless it is there; false if another run owns it.
    private func write(
        _ shard: ShardLayout.Shard, _ layout: ShardLayout, _ columns: inout ListColumns, _ entries: EntryReader
    ) async throws(PrefetchError) -> Bool {
        var cursor = export.results.cursor(at: shard.entries.lowerBound)
        if try await isThere(shard, images: try await cursor.pass(shard.entries.count), nil) { return true }
        guard try entries.seek(to: shard.entries.lowerBound) else { return true }
        for _ in shard.entries {
            guard let entry = try entries.next() else { return true }
            columns.add(entry)
        }
        // Where no line so far has the column with the captions, it is written at the end.
        guard let form = try? form(columns.all) else { return true }
        cursor = export.results.cursor(at: shard.entries.lowerBound)
        return try await write(shard, layout, form, entries, &cursor)
    }

    /// Writes a shard; false if another run owns it, or has taken it meanwhile: it is not named as whole then.
    private func write(
        _ shard: ShardLayout.Shard, _ layout: ShardLayout, _ form: ShardForm, _ entries: EntryReader,
        _ cursor: inout ResultCursor
    ) async throws(PrefetchError) -> Bool {
        guard try entries.seek(to: shard.entries.lowerBound) else { return true }
        guard try await owned?.take(shard.number) != false else { return false }
        try shards.begin(shard, form.columns)
        var group: [BatchResults.Line] = []
        func add() async throws(PrefetchError) -> Bool {
            try await export.exported(group, hashes) { [shards] line, entry throws(PrefetchError) in
                try shards.add(entry, of: line, layout.key(shard, at: line.result.index), form)
            }
            group.removeAll(keepingCapacity: true)
            return try await owned?.keep(shard.number) != false
        }
        for _ in shard.entries {
            guard let entry = try entries.next() else { break }
            let line = try await cursor.next(entry)
            if !entry.isLost { group.append(line) }
            if group.count == BatchExport.groupSize, !(try await add()) { return false }
        }
        guard try await add() else { return false }
        let bytes = try await put(shard.number)
        guard try await owned?.record(shard.number, bytes: bytes, isFound: false) != false else { return false }
        try await atPlace { shards throws(PrefetchError) in try shards.complete() }
        return true
    }
}
