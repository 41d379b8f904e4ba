package import Prefetch
internal import PrefetchModel
internal import WebImage

/// A batch as programs read it: `run --json` prints it last, `status --json` has it in `batches`.
package struct BatchAnswer: Record {
    var status: BatchStatus
    /// Who ended its URLs, if that was read.
    var snapshot: BatchSnapshot?
    var isAsExpected: Bool?

    package init(_ status: BatchStatus, isAsExpected: Bool? = nil) {
        (self.status, self.isAsExpected) = (status, isAsExpected)
    }

    init(_ status: BatchStatus, _ snapshot: BatchSnapshot?) { (self.status, self.snapshot) = (status, snapshot) }

    package var line: String { json.text }

    static let fields: [Field<BatchAnswer>] = [
        .version, Field("id", \.status.id), Field("state", \.status.state),
        Field("total", metric: "batch_urls", about: "URLs of the batch.", \.status.total),
        Field("finished", \.status.counts.finished), Field("skipped", \.status.counts.skipped),
        Field(
            "didFinish",
            about:
                "SDWebImage's callback; null where it is not called: of a cancelled batch that behaves as SDWebImage."
        ) { DidFinish($0.status) },
        Field("outcomes", \.status.counts),
        Field("bytes", metric: "received_bytes_total", about: "Bytes of images that the batch downloaded.") {
            Bytes($0.status.counts.bytes)
        },
        Field(
            "elapsed_seconds", metric: "batch_duration_seconds",
            about: "Time from the beginning of the batch to its end, or to now."
        ) { Seconds($0.status.elapsed) },
        Field("pushed", \.status.pushed), Field("sealed", \.status.isSealed), Field("paused", \.status.isPaused),
        Field("list") { PathText.shown($0.status.listPath) }, Field("sources", \.status.sources),
        Field("slot", \.status.slot),
        Field("options", \.status.options), Field("open", \.status.isOpen),
        Field(
            "estimated_total", about: "About how many URLs the batch has while its list is read; null before and after."
        ) { $0.status.estimate > 0 ? $0.status.estimate : nil as Int? },
        Field("deadline_ms") { $0.status.deadline > 0 ? $0.status.deadline : nil as Int? },
        Field("finish_at", \.status.finishAt), Field("max_failures", \.status.maxFailures),
        Field("ended_by", \.status.endedBy), Field("retry_of", \.status.retryOf),
        Field("retried_by", \.status.retriedBy),
        Field("shards", about: "What its run has written; null if it writes no shards.", \.status.shards),
        Field(
            "created", metric: "batch_created_timestamp_seconds", about: "When the batch was made."
        ) { Moment($0.status.created) },
        Field(
            "last_outcome", metric: "batch_last_outcome_timestamp_seconds",
            about: "When a URL of the batch ended last."
        ) { Moment($0.status.last) },
        Field(
            "latency_seconds",
            about:
                "How long the last requests of its images took, between fixed bounds (docs/PROTOCOL.md), a second behind "
                + "the counts; null if there was none."
        ) { Quantiles($0.status.fetches.durations) },
        Field(
            "fetches",
            about:
                "What its images and their requests were like, as workers told it, a second behind the counts; a hit is in "
                + "none of it.", \.status.fetches),
        .ifKnown(
            "by_worker",
            about: "status BATCH --json: who ended its URLs, together all of them; null is none of the workers.",
            \.snapshot?.workerParts),
        .ifKnown(
            "by_host",
            about:
                "status BATCH --json: hosts that were asked, together all of its URLs; null are the others, and URLs for "
                + "which none was asked.", \.snapshot?.hostParts),
        .ifKnown(
            "http_statuses",
            about: "status BATCH --json: of httpError, how many had which status, as far as it was told.",
            { batch in
                batch.snapshot.map { snapshot in
                    Members(snapshot.httpStatuses.sorted { $0.key < $1.key }.map { (String($0.key), $0.value) })
                }
            }),
        .ifKnown("as_expected", about: "demo --json: whether every URL ended as expected.", \.isAsExpected),
    ]
}

extension WrittenShards: Record {
    static let fields: [Field<WrittenShards>] = [
        Field("written", \.written), Field("bytes") { Bytes($0.bytes) },
        Field("open", about: "Shards of which the first lines have ended, and not all.", \.open),
    ]
}

private struct DidFinish: Record {
    let totalCount: Int, skippedCount: Int

    init?(_ status: BatchStatus) {
        guard status.state != .cancelled || status.options.completesWhenCancelled else { return nil }
        (totalCount, skippedCount) = status.didFinish
    }

    static let fields: [Field<DidFinish>] = [
        Field("totalCount", \.totalCount), Field("skippedCount", \.skippedCount),
    ]
}

extension PrefetchCounts: Record {
    static let fields: [Field<PrefetchCounts>] = PrefetchOutcome.allCases.map { outcome in
        Field(outcome.name) { $0[outcome] }
    }
}

extension BatchOptions: Record {
    static let fields: [Field<BatchOptions>] = [
        Field("validate", \.validate), Field("unverifiable", \.unverifiable), Field("durability", \.durability),
        Field("blacklist", \.blacklist),
        Field("blacklist_ttl_seconds", about: "When entries lapse, by reason; 0: never.") { options in
            Members(BlacklistTTL.Reason.allCases.map { ($0.rawValue, Seconds(options.listingTTL[$0])) })
        },
        Field("retry_failed", \.retryFailed), Field("from_cache_only", \.fromCacheOnly),
        Field("cache_key", \.cacheKey.description),
        Field(
            "variant", about: "How images are changed before they are stored, as in their keys; null: not.",
            \.storedVariant?.transformerKey),
        Field("rules", about: "Which images are taken, by the names of the options that are set.") {
            given($0.rules)
        },
        Field(
            "requests",
            about:
                "The request options that were given, by their names, as on a command line; of headers the names alone."
        ) { options in
            given(options.requests)
        },
        Field("compat", \.compat),
    ]

    /// The settings that were given, by their names, as on a command line.
    private static func given<Root: SettingRecord>(_ record: Root) -> Members<String> {
        Members(Root.settings.compactMap { row in row.text(record).map { (row.name, $0) } })
    }
}

// MARK: - Transfers

extension FetchTally: Record {
    static let fields: [Field<FetchTally>] = [
        Field("good_tries", \.successfulTries), Field("failed_tries", \.failedTries),
        Field("reused_connections", \.reused),
        Field(
            "refused_images", about: "Transfers that ended because the image broke a rule about size or type.",
            \.refusedImages),
        Field("bytes_saved", about: "Announced bytes of those images that were not transferred.", \.savedBytes),
        Field("mean_seconds") { StageMeans($0) },
        Field("formats") { Members(FetchText.formats($0).map { ($0.name, $0.count) }) }, Field("sizes", \.sizeClasses),
    ]

    fileprivate var sizeClasses: [SizeClass] {
        zip(Self.sizeBounds.map { $0 } + [nil], sizes).map { SizeClass(bound: $0, images: $1) }
    }
}

private struct SizeClass: Record {
    let bound: Int?, images: Int

    static let fields: [Field<SizeClass>] = [Field("below_bytes", \.bound), Field("images", \.images)]
}

private struct Quantiles: Record {
    let durations: DurationHistogram

    init?(_ durations: DurationHistogram) {
        guard durations.total > 0 else { return nil }
        self.durations = durations
    }

    static let fields: [Field<Quantiles>] = FetchText.quantiles.map { name, share in
        Field(name) { Seconds($0.durations.quantile(share) ?? 0, digits: 6) }
    }
}

private struct StageMeans: Record {
    let fetches: FetchTally

    init?(_ fetches: FetchTally) {
        guard fetches.durations.total > 0 else { return nil }
        self.fetches = fetches
    }

    static let fields: [Field<StageMeans>] = FetchTally.Stage.allCases.map { stage in
        Field(stage == .firstByte ? "first_byte" : FetchText.name(stage)) {
            Seconds($0.fetches.mean(stage) ?? 0, digits: 6)
        }
    }
}
