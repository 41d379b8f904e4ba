internal import Prefetch
internal import WebImage

/// What keeps a queue from going on.
struct Health: Record {
    let queue: QueueSnapshot
    /// Workers that were lost within ten minutes.
    let lost: [String]
    let statuses: [BatchStatus]

    static let fields: [Field<Health>] = [
        Field("redis_full", \.queue.isFull), Field("redis_used_bytes", \.queue.usedMemory),
        Field("redis_max_bytes", \.queue.maxMemory), Field("dead", \.queue.dead), Field("lost_workers", \.lost),
        Field("broken") { $0.queue.running.filter { $0.broken != nil } }, Field("hosts", \.hosts),
        Field("waiting_for_list") { $0.statuses.filter(\.isWaitingForList).map(\.id) },
        Field("waiting_for_memory") { $0.statuses.filter(\.isWaitingForMemory).map(\.id) },
        Field("blacklist_max", \.queue.failedURLLimit.most),
        Field("blacklist_removed", \.queue.failedURLLimit.removed),
    ]

    /// Where nothing runs nobody waits for a host.
    private var hosts: [HostProblem] { queue.running.isEmpty ? [] : queue.hosts }

    /// A line for each thing; none where all is well.
    /// * `noWorker`: something is to be done, and nobody is there to do it.
    func lines(noWorker: Bool) -> [String] {
        var lines: [String] = []
        if queue.isFull {
            lines.append(
                "Redis is full: \(Wording.bytes(queue.usedMemory)) of \(Wording.bytes(queue.maxMemory)); new URLs wait until "
                    + "workers have made room, or maxmemory is raised")
        }
        if noWorker { lines.append("no worker is running: start prefetch-worker, or run the list again") }
        for batch in queue.running {
            guard let message = batch.broken else { continue }
            lines.append("\(Self.broken(batch.id, message)), and submit or run its list again")
        }
        if queue.dead > 0 {
            lines.append("\(Wording.count(queue.dead, "malformed job list element")); prefetch-coord fsck shows them")
        }
        if !lost.isEmpty {
            let names = lost.prefix(5).map(TerminalText.escaped).joined(separator: ", ")
            lines.append(
                "lost within ten minutes: \(names)\(lost.count > 5 ? " and others" : ""); others have their jobs")
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
        return lines + HostText.lines(hosts)
    }

    /// That a batch cannot end, and the command that removes it.
    static func broken(_ id: String, _ message: String) -> String {
        let id = TerminalText.escaped(id)
        return "\(id) cannot end (\(TerminalText.escaped(message))): remove it with prefetch-coord rm --force \(id)"
    }
}

extension QueueSnapshot.RunningBatch: Record {
    static let fields: [Field<Self>] = [Field("batch", \.id), Field("message") { $0.broken ?? "" }]
}
