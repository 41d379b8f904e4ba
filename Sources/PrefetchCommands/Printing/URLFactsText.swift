internal import Prefetch
internal import WebImage

/// What is known of a URL.
struct URLFactsText {
    let url: String
    let facts: URLFacts
    /// The cache that was looked into, if any.
    let cache: String?
    let queue: String

    /// Some lines for a person.
    var lines: [String] {
        [TerminalText.url(url)] + (listing + image + place + endings + [looked]).map { "  " + $0 }
    }

    /// Where nothing was found.
    var unknown: String {
        "it is not on the blacklist of queue '\(queue)'"
            + (cache.map { ", not in the cache \(TerminalText.escaped($0))," } ?? "")
            + " and neither skipped nor stored by \(Self.newest(facts))"
    }

    private static func newest(_ facts: URLFacts) -> String {
        facts.batchesRead < facts.batchCount
            ? "the newest \(Wording.count(facts.batchesRead)) of \(Wording.count(facts.batchCount, "batch", "batches"))"
            : Wording.count(facts.batchCount, "batch", "batches")
    }

    private var listing: [String] {
        guard let listing = facts.listing else { return ["not on the blacklist"] }
        var lines = ["on the blacklist: " + FailedURLText.reason(listing)]
        if let times = FailedURLText.times(listing) { lines[0] += ", listed \(times)" }
        if !listing.detail.isEmpty { lines.append("  \(TerminalText.escaped(listing.detail))") }
        let time = UTCTime.text(milliseconds: listing.next)
        if facts.listingState == .lapsed {
            lines.append("  lapsed \(time): the next batch that has it requests it")
        } else if listing.next > 0 {
            lines.append("  next request: by a batch that has it after \(time)")
        } else if listing.count == 0 {
            lines.append("  next request: never, it was added by hand")
        } else {
            lines.append("  next request: never, by the --blacklist-ttl or --blacklist of its batch")
        }
        if facts.image != nil {
            lines.append("  a hit all the same with --blacklist smart; skipped with sd3 and sd4")
        }
        return lines
    }

    private var image: [String] {
        guard let cache else { return ["no cache was named: --cache DIR"] }
        guard let image = facts.image else { return ["not in the cache \(TerminalText.escaped(cache))"] }
        let lines = ["in the cache: " + CacheEntryText.facts(image)]
        guard let key = facts.key, !key.hasBytes(of: url) else { return lines }
        return lines + ["  under the key \(TerminalText.url(key))"]
    }

    private var place: [String] {
        guard let place = facts.place else { return [] }
        let batch = TerminalText.escaped(place.batch.id)
        return [
            "line \(place.line) of \(batch): \(place.outcome.name), in the cache of \(CacheText.place(place.cache))"
        ]
    }

    private var endings: [String] {
        facts.endings.flatMap { ending in
            let batch = ending.batch
            let time = batch.ended > 0 ? batch.ended : batch.created
            let about =
                "\(TerminalText.escaped(batch.id)) (\(batch.state.rawValue), \(UTCTime.text(milliseconds: time)))"
            var lines = ending.details.prefix(3).map { detail in
                var text = "line \(detail.line) of \(about): \(BatchText.cause(of: detail))"
                if detail.tries > 1 { text += ", \(detail.tries) tries" }
                return text + (detail.detail.isEmpty ? "" : ", \(TerminalText.escaped(detail.detail))")
            }
            if ending.details.count > 3 {
                lines.append(
                    "and \(Wording.count(ending.details.count - 3, "more line")) of \(TerminalText.escaped(batch.id))")
            }
            return lines
        }
    }

    private var looked: String {
        "looked at \(Self.newest(facts)) of queue '\(queue)'"
    }

    /// Commands that would help.
    ///
    /// * `words`: what they need to find the same queue and cache.
    func advice(_ words: String) -> [String] {
        guard facts.image == nil, facts.place == nil else { return [] }
        var lines: [String] = []
        if facts.listing != nil {
            lines.append(
                "take it off the list:    \(Shell.program) blacklist rm \(Shell.quoted(ShownURL.url(url)))\(words)")
            lines.append("or request it anyway:    --retry-failed with run or submit")
        }
        if let newest = facts.endings.first?.batch, newest.state != .running, newest.retriedBy == nil,
            facts.endings[0].details.contains(where: { $0.outcome != .invalidURL })
        {
            lines.append("retry what it skipped:   \(Shell.program) retry \(TerminalText.escaped(newest.id))\(words)")
        }
        return lines
    }
}

extension URLFactsText: Record {
    static let fields: [Field<Self>] = [
        .version, Field("url") { Masked.url($0.url) }, Field("known", \.facts.isKnown), Field("listed", \.listed),
        Field("cache", \.cache), Field("cached", \.facts.image),
        Field("key", about: "The key of the image: the URL, or what stands for it and its line's headers or mirrors.") {
            known in known.facts.key.map(Masked.url)
        },
        Field("elsewhere", about: "The image in the cache of another machine.", \.facts.place),
        Field("skipped") { known in
            known.facts.endings.flatMap { ending in ending.details.map { SkippedLine(batch: ending.batch, detail: $0) }
            }
        },
        Field("batches_read", \.facts.batchesRead), Field("batches", \.facts.batchCount),
    ]

    private var listed: ListedURL? { facts.listing.map { ListedURL(entry: $0, state: facts.listingState) } }
}

private struct ListedURL: Record {
    let entry: FailedURLEntry
    let state: URLFacts.ListingState?

    static let fields: [Field<Self>] = FailedURLEntry.fields.map { $0.inside(\.entry) } + [Field("state", \.state)]
}

extension URLFacts.Place: Record {
    static let fields: [Field<Self>] = [
        Field("batch", \.batch.id), Field("line", \.line), Field("outcome", \.outcome), Field("cache", \.cache),
    ]
}

/// A line with the URL that was skipped.
private struct SkippedLine: Record {
    let batch: BatchStatus
    let detail: FailureDetail

    static let fields: [Field<Self>] = [
        Field("batch", \.batch.id), Field("state", \.batch.state), Field("line", \.detail.line),
        Field("outcome") { SkippedOutcome($0.detail.outcome) }, Field("http_status", \.detail.httpStatus),
        Field("tries", \.detail.tries), Field("detail") { Masked.sentence($0.detail.detail) },
    ]
}
