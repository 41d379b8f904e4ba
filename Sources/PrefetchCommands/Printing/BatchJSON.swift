package import Prefetch
internal import WebImage

/// The stable machine form of a batch: `run --json` prints it last, `status --json` has it in `batches`. Fields may be added, none
/// is ever removed.
package enum BatchJSON {
    package static func object(_ status: BatchStatus) -> JSONText {
        let counts = status.counts
        return .object(
            [
                ("v", .int(1)), ("id", .string(status.id)), ("state", .string(status.state.rawValue)),
                ("total", .int(status.total)),
                ("finished", .int(counts.finished)), ("skipped", .int(counts.skipped)),
                ("didFinish", didFinish(status)),
                ("outcomes", .object(PrefetchOutcome.allCases.map { ($0.name, .int(counts[$0])) })),
                ("bytes", .int(counts.bytes)),
                ("elapsed_seconds", .number(status.elapsed)), ("pushed", .int(status.pushed)),
                ("sealed", .bool(status.isSealed)), ("paused", .bool(status.isPaused)),
                ("list", .string(PathText.shown(status.listPath))), ("slot", status.slot.map { .string($0) } ?? .null),
                ("options", options(status.options)), ("open", .bool(status.isOpen)),
                ("deadline_ms", status.deadline > 0 ? .int(status.deadline) : .null),
                ("finish_at", status.finishAt.map { .string($0) } ?? .null),
                ("max_failures", status.maxFailures.map { .string($0) } ?? .null),
                ("ended_by", status.endedBy.map { .string($0.rawValue) } ?? .null),
                ("retry_of", status.retryOf.map { .string($0) } ?? .null),
                ("retried_by", status.retriedBy.map { .string($0) } ?? .null),
            ] + FetchText.members(status.fetches))
    }

    /// null where it is not called: of a cancelled batch that behaves as SDWebImage.
    private static func didFinish(_ status: BatchStatus) -> JSONText {
        guard status.state != .cancelled || status.options.completesWhenCancelled else { return .null }
        return .object([
            ("totalCount", .int(status.didFinish.totalCount)), ("skippedCount", .int(status.didFinish.skippedCount)),
        ])
    }

    private static func options(_ options: BatchOptions) -> JSONText {
        .object([
            ("validate", .string(options.validate.name)), ("unverifiable", .string(options.unverifiable.rawValue)),
            ("durability", .string(options.durability.rawValue)), ("blacklist", .string(options.blacklist.rawValue)),
            (
                "blacklist_ttl_seconds",
                .object(BlacklistTTL.Reason.allCases.map { ($0.rawValue, .number(options.listingTTL[$0])) })
            ),
            ("retry_failed", .bool(options.retryFailed)),
            ("from_cache_only", .bool(options.fromCacheOnly)), ("cache_key", .string(options.cacheKey.description)),
            ("variant", options.storedVariant.map { .string($0.transformerKey) } ?? .null),
            ("rules", .object(options.rules.members.map { ($0.name, .string($0.value)) })),
            ("requests", requests(options.requests)),
            ("compat", options.compat.map { .string($0.rawValue) } ?? .null),
        ])
    }

    /// The request options that were given, by their names, as on a command line.
    private static func requests(_ settings: RequestSettings) -> JSONText {
        .object(
            RequestSettings.table.compactMap { option in
                option.text(settings).map { text in
                    (String(option.flag.dropFirst(2).map { $0 == "-" ? "_" : $0 }), .string(text))
                }
            })
    }

    static func failure(_ failure: FailureDetail) -> JSONText {
        .object([
            ("line", .int(failure.line)), ("url", .url(failure.url)), ("outcome", .string(failure.outcome.name)),
            ("reason", failure.reason.map { .string($0.rawValue) } ?? .null),
            ("http_status", failure.httpStatus.map { .int($0) } ?? .null), ("detail", .sentence(failure.detail)),
            ("attempts", .int(failure.attempts)), ("ended", time(failure.ended)),
        ])
    }

    /// * `milliseconds`: since 1970.
    private static func time(_ milliseconds: Int?) -> JSONText {
        milliseconds.map { .string(UTCTime.text(milliseconds: $0)) } ?? .null
    }

    /// What stands beside an image in an archive: nothing that differs from one export to the next.
    static func sample(_ line: ExportedLine) -> JSONText {
        guard case .object(let members) = Self.line(line) else { return .null }
        return .object(
            members.filter { !["path", "outcome", "http_status", "attempts", "ended", "host"].contains($0.0) })
    }

    /// One line of `export --format jsonl`; what is not known is null.
    static func line(_ line: ExportedLine) -> JSONText {
        func text(_ value: String?) -> JSONText { value.map { .string($0) } ?? .null }
        func number(_ value: Int?) -> JSONText { value.map { .int($0) } ?? .null }
        let image = line.image
        let columns = line.result.columns.map { columns in
            [("columns", JSONText.object(columns.sorted { $0.key < $1.key }.map { ($0.key, .url($0.value)) }))]
        }
        let members: [(String, JSONText)] = [
            ("line", .int(line.result.line)), ("url", .url(line.result.url)),
            ("outcome", text(line.result.outcome?.name)), ("path", text(image?.path)),
            ("bytes", number(image?.bytes)), ("sha256", text(image?.sha256)), ("format", text(image?.format?.rawValue)),
            ("width", number(image?.width)), ("height", number(image?.height)), ("level", text(image?.level?.name)),
            ("orientation", number(image?.traits?.orientation)), ("frames", number(image?.traits?.frames)),
            ("alpha", image?.traits.map { .bool($0.hasAlpha) } ?? .null),
            ("color_space", text(image?.traits?.colorSpace.rawValue)),
            ("http_status", number(line.result.failure?.httpStatus)),
            ("attempts", number(line.result.failure?.attempts)), ("ended", time(line.result.ended)),
            ("host", text(line.host)),
        ]
        return .object(members + (columns ?? []))
    }
}

/// Who did a batch, by whom it was served and how: three lists that each add up to its counts, since all of them are of one moment.
enum LookJSON {
    /// A batch's object with its lists; the same where they were not read.
    static func adding(_ look: BatchSnapshot?, to batch: JSONText) -> JSONText {
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
    private static func workers(_ look: BatchSnapshot) -> [JSONText] {
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
    private static func hosts(_ look: BatchSnapshot) -> [JSONText] {
        let counts = look.status.counts
        var rest = BatchSnapshot.Host(finished: counts.finished, skipped: counts.skipped, bytes: counts.bytes)
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

/// Events of a batch as `watch --json` prints them, one object a line. Fields may be added, none is ever removed.
enum EventJSON {
    static func object(_ event: PrefetchEvent) -> JSONText {
        switch event {
        case .progress(let finished, let total):
            .object([("event", .string("progress")), ("finished", .int(finished)), ("total", .int(total))])
        case .didPrefetch(let url, let finished, let total, let outcome, _):
            .object([
                ("event", .string("didPrefetchURL")), ("url", .url(url)), ("finishedCount", .int(finished)),
                ("totalCount", .int(total)), ("outcome", outcome.map { .string($0.name) } ?? .null),
            ])
        case .didFinish(let total, let skipped):
            .object([("event", .string("didFinish")), ("totalCount", .int(total)), ("skippedCount", .int(skipped))])
        case .completion(let finished, let skipped):
            .object([
                ("event", .string("completion")), ("finishedCount", .int(finished)), ("skippedCount", .int(skipped)),
            ])
        }
    }
}
