internal import Prefetch
internal import WebImage

/// A batch for `export --format html`: what became of its URLs, by whom they were served, how long that took, and what was skipped.
struct BatchPage {
    /// The most hosts, workers and skipped lines that are listed.
    static let (maxHosts, maxWorkers, maxFailures) = (20, 64, 100)

    var snapshot: BatchSnapshot
    var failures: [FailureDetail] = []
    /// What the resolvers of its workers were asked.
    var names = NameReport()

    private var status: BatchStatus { snapshot.status }
    private var counts: PrefetchCounts { status.counts }

    /// What the title of the page of a batch begins with.
    static func title(of id: String) -> String { "\(id): " }

    var page: HTMLPage {
        let state = status.isEffectivelyPaused ? "paused" : BatchText.ended(status)
        let list = status.listPath.isEmpty ? "" : "; list \(status.listName)"
        return HTMLPage(
            title: Self.title(of: status.id)
                + "\(state), \(Wording.count(counts.finished)) of \(status.totalText) finished",
            note: "begun \(UTCTime.text(milliseconds: status.created)), \(status.ended > 0 ? "took" : "for") "
                + "\(Wording.seconds(status.elapsed))\(list); checked: \(status.options.validate.name); as it was at "
                + "\(UTCTime.text(milliseconds: snapshot.at)), prefetch \(PrefetchVersion)",
            sheet: sheet)
    }

    var sheet: Sheet {
        var sheet = Sheet(BatchAnswer(status, snapshot))
        sheet.parts.append(
            .rows([
                ("images", Wording.count(counts.finished - counts.skipped)), ("skipped", Wording.count(counts.skipped)),
                ("of URLs", Wording.count(status.total)),
                ("rate", "\(Wording.decimal(ProgressRate.mean(status), digits: 0))/s"),
                ("downloaded", Wording.bytes(counts.bytes)), ("from the cache", Wording.count(counts[.hit])),
            ]))
        func section(_ title: String, _ note: String, _ rows: [some Record], by first: String? = nil) {
            guard !rows.isEmpty else { return }
            sheet.parts.append(.heading(title, note: note))
            sheet.add(table: rows, first: first)
        }
        func shares(_ parts: [(name: String, count: Int)], of whole: Int) -> [NamedPart] {
            parts.filter { $0.count > 0 }.map { NamedPart($0.name, $0.count, of: whole) }
        }
        section(
            "How they ended", "\(Wording.count(status.total)) URLs, each counted once",
            shares(outcomes, of: status.total), by: "outcome")
        section(
            "Skipped, by cause", "\(Wording.count(counts.skipped)) URLs ended without an image", snapshot.causes,
            by: "cause")
        let hosts = snapshot.hostParts.filter { $0.host != nil }
        section(
            "Hosts", "requests to each; cache hits make none" + Self.others(hosts.count - Self.maxHosts, "host"),
            Array(hosts.prefix(Self.maxHosts)))
        let workers = snapshot.workerParts.filter { $0.worker != nil }
            .sorted { ($0.counts.finished, $1.worker ?? "") > ($1.counts.finished, $0.worker ?? "") }
        section(
            "Workers",
            "URLs that each was the first to settle" + Self.others(workers.count - Self.maxWorkers, "worker"),
            Array(workers.prefix(Self.maxWorkers)))
        let fetches = status.fetches
        let images = fetches.sizes.reduce(0, +)
        section(
            "Images", "what was downloaded, by its content", shares(FetchText.formats(fetches), of: images),
            by: "format")
        section("Sizes", "bytes of the same images", shares(FetchText.sizes(fetches), of: images), by: "bytes")
        if fetches.durations.total > 0 {
            sheet.parts.append(
                .heading(
                    "How long transfers took",
                    note: "the last requests of \(Wording.count(fetches.durations.total, "image")), "
                        + "\(Wording.share(fetches.reused, of: fetches.durations.total)) over a connection that was there; mean of each step"
                ))
            sheet.parts.append(.rows(times))
        }
        section(
            "What limited it",
            "the time of workers that had its URLs, \(Wording.seconds(Double(status.limits.total) / 1000)) in all, by what held "
                + "them back; milliseconds",
            shares(status.limits.causes.map { (LimitText.name($0), status.limits[$0]) }, of: status.limits.total),
            by: "cause")
        section(
            "Names", "queries of this batch's workers to their resolvers, as of their last heartbeats",
            shares(
                [
                    ("answered", names.answered), ("no such name", names.noNames), ("resolver failed", names.failed),
                    ("no answer", names.unanswered),
                ], of: names.queries), by: "end")
        let more = counts.skipped - min(failures.count, Self.maxFailures)
        section(
            more > 0 ? "Some of what was skipped" : "What was skipped",
            (more > 0 ? "\(Wording.count(more)) more. " : "")
                + "All of them: prefetch-coord failures \(status.id); once more: prefetch-coord retry \(status.id)",
            Array(failures.prefix(Self.maxFailures)))
        return sheet
    }

    /// Of all URLs: images in order, then skipped ones by frequency, then open ones.
    private var outcomes: [(name: String, count: Int)] {
        let skipped = PrefetchOutcome.allCases.filter(\.isSkipped)
            .sorted { (counts[$0], $1.rawValue) > (counts[$1], $0.rawValue) }
        return (PrefetchOutcome.allCases.filter { !$0.isSkipped } + skipped).map { ($0.name, counts[$0]) }
            + [("open", max(0, status.total - counts.finished))]
    }

    private var times: [(title: String, text: String)] {
        let fetches = status.fetches
        return [("half of them in", 0.5), ("95% in", 0.95), ("99% in", 0.99)].map { name, share in
            (name, Wording.latency(fetches.durations.quantile(share) ?? 0))
        }
            + FetchTally.Stage.allCases.compactMap { stage in
                fetches.mean(stage).flatMap { $0 > 0 ? (FetchText.name(stage), Wording.latency($0)) : nil }
            }
    }

    private static func others(_ count: Int, _ noun: String) -> String {
        count > 0 ? ". \(Wording.count(count, "other \(noun)")) had fewer" : ""
    }
}
