internal import Prefetch
internal import WebImage

/// Who did a batch, by whom it was served and how: three lists that each add up to its counts, since all of them are of one moment.
enum LookJSON {
    /// A batch's object with its lists; the same where they were not read.
    static func adding(_ look: BatchLook?, to batch: JSONText) -> JSONText {
        guard let look, case .object(let members) = batch else { return batch }
        return .object(
            members + [
                ("by_worker", .array(workers(look))), ("by_host", .array(hosts(look))),
                (
                    "http_statuses",
                    .object(look.httpStatuses.sorted { $0.key < $1.key }.map { (String($0.key), .int($0.value)) })
                ),
            ])
    }

    /// Null is who ended URLs without being a worker: a cancel, a look into the cache while the list was queued.
    private static func workers(_ look: BatchLook) -> [JSONText] {
        var rest = look.status.counts
        var rows: [JSONText] = []
        for (name, counts) in look.counts.sorted(by: { $0.key < $1.key }) {
            for outcome in PrefetchOutcome.allCases { rest[outcome] -= counts[outcome] }
            rest.bytes -= counts.bytes
            rows.append(row("worker", name, counts.finished, counts.skipped, counts.bytes))
        }
        if rest.finished != 0 { rows.append(row("worker", nil, rest.finished, rest.skipped, rest.bytes)) }
        return rows
    }

    /// Null are the hosts that are not counted one by one, those of the last second, and URLs for which nobody was asked.
    private static func hosts(_ look: BatchLook) -> [JSONText] {
        let counts = look.status.counts
        var rest = BatchLook.Host(finished: counts.finished, skipped: counts.skipped, bytes: counts.bytes)
        var rows: [JSONText] = []
        for (name, host) in look.hosts.sorted(by: { ($1.value.finished, $0.key) < ($0.value.finished, $1.key) }) {
            rest.finished -= host.finished
            rest.skipped -= host.skipped
            rest.bytes -= host.bytes
            rows.append(row("host", name, host.finished, host.skipped, host.bytes))
        }
        if rest.finished != 0 { rows.append(row("host", nil, rest.finished, rest.skipped, rest.bytes)) }
        return rows
    }

    private static func row(_ what: String, _ name: String?, _ finished: Int, _ skipped: Int, _ bytes: Int) -> JSONText
    {
        .object([
            (what, name.map { .string($0) } ?? .null), ("finished", .int(finished)), ("skipped", .int(skipped)),
            ("bytes", .int(bytes)),
        ])
    }
}
