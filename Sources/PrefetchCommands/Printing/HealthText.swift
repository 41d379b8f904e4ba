internal import Prefetch
internal import WebImage

/// What keeps a queue from going on, in words and as JSON.
enum HealthText {
    /// A line for each thing; none where all is well.
    /// * `lost`: workers that were lost within ten minutes.
    /// * `noWorker`: something is to be done, and nobody is there to do it.
    static func lines(_ queue: QueueSnapshot, lost: [String], noWorker: Bool) -> [String] {
        var lines: [String] = []
        if queue.isFull {
            lines.append(
                "Redis is full: \(Wording.bytes(queue.usedMemory)) of \(Wording.bytes(queue.maxMemory)); new URLs wait until "
                    + "workers have made room, or maxmemory is raised")
        }
        if noWorker { lines.append("no worker is running: start a prefetch-worker, or prefetch-coord run on its list") }
        for batch in queue.running {
            guard let message = batch.broken else { continue }
            lines.append("\(broken(batch.id, message)), and submit or run its list again")
        }
        if queue.dead > 0 {
            lines.append(
                "\(Wording.count(queue.dead)) malformed job list elements; prefetch-coord fsck shows them")
        }
        if !lost.isEmpty {
            let names = lost.prefix(5).map(TerminalText.escaped).joined(separator: ", ")
            lines.append(
                "lost within ten minutes: \(names)\(lost.count > 5 ? " and others" : ""); others have their jobs"
            )
        }
        if Set(queue.workers.values.map { ByteText($0.report.rules) }).count > 1 {
            lines.append("the workers' settings differ: prefetch-coord workers shows what each refuses")
        }
        let limit = queue.failedURLLimit
        if limit.removed > 0 {
            lines.append(
                "the blacklist has at most \(Wording.count(limit.most, "URL")): \(Wording.count(limit.removed)) older ones were removed"
            )
        }
        return lines + HostText.lines(hosts(queue))
    }

    /// That a batch cannot end, and the command that removes it.
    static func broken(_ id: String, _ message: String) -> String {
        let id = TerminalText.escaped(id)
        return "\(id) cannot end (\(TerminalText.escaped(message))): remove it with prefetch-coord rm --force \(id)"
    }

    static func object(_ queue: QueueSnapshot, lost: [String], _ statuses: [BatchStatus]) -> JSONText {
        .object([
            ("redis_full", .bool(queue.isFull)), ("redis_used_bytes", .int(queue.usedMemory)),
            ("redis_max_bytes", .int(queue.maxMemory)), ("dead", .int(queue.dead)),
            ("lost_workers", .array(lost.map { .string($0) })),
            (
                "broken",
                .array(
                    queue.running.compactMap { batch in
                        batch.broken.map { .object([("batch", .string(batch.id)), ("message", .string($0))]) }
                    })
            ),
            ("hosts", .array(hosts(queue).map(HostText.object))),
            ("waiting_for_list", .array(statuses.filter(\.isWaitingForList).map { .string($0.id) })),
            ("waiting_for_memory", .array(statuses.filter(\.isWaitingForMemory).map { .string($0.id) })),
            ("blacklist_max", .int(queue.failedURLLimit.most)),
            ("blacklist_removed", .int(queue.failedURLLimit.removed)),
        ])
    }

    /// Where nothing runs nobody waits for a host.
    private static func hosts(_ queue: QueueSnapshot) -> [HostProblem] { queue.running.isEmpty ? [] : queue.hosts }
}
