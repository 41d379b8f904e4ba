internal import Prefetch
internal import WebImage

/// What keeps a queue from going on, in words and as JSON.
enum HealthText {
    /// A line for each thing; none where all is well.
    /// * `noWorker`: something is to be done, and nobody is there to do it.
    static func lines(_ health: QueueHealth, noWorker: Bool) -> [String] {
        var lines: [String] = []
        if health.isFull {
            lines.append(
                "Redis is full: \(Wording.bytes(health.usedMemory)) of \(Wording.bytes(health.maxMemory)); new URLs wait until "
                    + "workers have made room, or maxmemory is raised")
        }
        if noWorker { lines.append("nobody works on it: start a prefetch-worker, or prefetch-coord run on its list") }
        for (batch, message) in health.broken.sorted(by: { $0.key < $1.key }) {
            lines.append(
                "\(TerminalText.escaped(batch)) cannot be worked on: \(TerminalText.escaped(message)); mend it: prefetch-coord repair "
                    + TerminalText.escaped(batch)
            )
        }
        if health.dead > 0 {
            lines.append(
                "\(Wording.count(health.dead)) elements of job lists were no jobs; prefetch-coord fsck shows them")
        }
        if !health.lost.isEmpty {
            let names = health.lost.prefix(5).map(TerminalText.escaped).joined(separator: ", ")
            lines.append(
                "lost within ten minutes: \(names)\(health.lost.count > 5 ? " and others" : ""); others have their jobs"
            )
        }
        let limit = health.failedURLLimit
        if limit.removed > 0 {
            lines.append(
                "\(FailedURLText.limit(limit)): \(Wording.count(limit.removed)) older ones were removed; raise it: "
                    + "prefetch-coord blacklist set --blacklist-max N")
        }
        return lines + HostText.lines(health.hosts)
    }

    static func object(_ health: QueueHealth, _ statuses: [BatchStatus]) -> JSONText {
        .object([
            ("redis_full", .bool(health.isFull)), ("redis_used_bytes", .int(health.usedMemory)),
            ("redis_max_bytes", .int(health.maxMemory)), ("dead", .int(health.dead)),
            ("lost_workers", .array(health.lost.map { .string($0) })),
            (
                "broken",
                .array(
                    health.broken.sorted { $0.key < $1.key }.map {
                        .object([("batch", .string($0.key)), ("message", .string($0.value))])
                    })
            ),
            ("hosts", .array(health.hosts.map(HostText.object))),
            ("waiting_for_list", .array(statuses.filter(\.waitsForItsList).map { .string($0.id) })),
            ("waiting_for_memory", .array(statuses.filter(\.waitsForMemory).map { .string($0.id) })),
            ("blacklist_max", .int(health.failedURLLimit.most)),
            ("blacklist_removed", .int(health.failedURLLimit.removed)),
        ])
    }
}
