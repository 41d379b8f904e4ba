internal import Prefetch
internal import WebImage

/// A batch as an HTML page: the data of `status --json`, and skipped lines. No scripts and no requests; the policy in its head makes
/// browsers enforce that, whatever a URL contains.
struct ReportPage {
    /// The most hosts, workers and skipped lines that are listed.
    static let (maxHosts, maxWorkers, maxFailures) = (20, 64, 100)

    var look: BatchSnapshot
    var failures: [FailureDetail] = []
    /// What the resolvers of its workers were asked.
    var names = NameReport()

    private var status: BatchStatus { look.status }
    private var counts: PrefetchCounts { status.counts }

    /// Whether a page begins as that of a batch does.
    static func isReport(_ head: [UInt8], of id: String) -> Bool {
        head.starts(with: "<!DOCTYPE html>".utf8) && !head.ranges(of: Array("<title>\(id): ".utf8)).isEmpty
    }

    var html: HTML {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta name="generator" content="prefetch \(PrefetchVersion)">
        <title>\(status.id): \(Wording.count(counts.finished)) of \(Wording.count(status.total)) finished</title>
        <style>\(Self.style)</style>
        </head>
        <body>
        <main>
        \(header)\(totals)\(outcomes)\(causesTable)\(hosts)\(images)\(times)\(limits)\(workers)\(namesTable)\(failuresTable)
        </main>
        <footer>
        <p>\(status.id), as it was at \(UTCTime.text(milliseconds: look.at)). prefetch \(PrefetchVersion)</p>
        </footer>
        </body>
        </html>

        """
    }

    // MARK: - Figures

    /// Causes of URLs without an image, `httpError` by status, most frequent first; they add up to the skipped.
    var causes: [(name: String, count: Int)] {
        var causes: [(name: String, count: Int)] = []
        for outcome in PrefetchOutcome.allCases where outcome.isSkipped && counts[outcome] > 0 {
            var rest = counts[outcome]
            for (status, count) in look.httpStatuses.sorted(by: { $0.key < $1.key }) where outcome == .httpError {
                // Statuses are reported a second late and separately: limited to the count.
                let part = max(0, min(rest, count))
                rest -= part
                if part > 0 { causes.append(("\(outcome.name) \(status)", part)) }
            }
            if rest > 0 { causes.append((outcome.name, rest)) }
        }
        return causes.sorted { ($0.count, $1.name) > ($1.count, $0.name) }
    }

    private var header: HTML {
        let state = status.isHeld ? "paused" : BatchText.ended(status)
        let list: HTML = status.listPath.isEmpty ? "" : " · list <bdi>\(PathText.shown(status.listPath))</bdi>"
        return """
            <header>
            <h1>\(status.id) <span class="state">\(state)</span></h1>
            <p class="note">\(UTCTime.text(milliseconds: status.created)) · \(status.ended > 0 ? "took" : "for") \(Wording.seconds(status.elapsed))\(list) · checked: \(status.options.validate.name)</p>
            </header>

            """
    }

    private var totals: HTML {
        let rate = Wording.decimal(ProgressRate.mean(status), digits: 0)
        return tiles([
            ("images", Wording.count(counts.finished - counts.skipped)), ("skipped", Wording.count(counts.skipped)),
            ("of URLs", Wording.count(status.total)), ("rate", "\(rate)/s"),
            ("downloaded", Wording.bytes(counts.bytes)),
            ("from the cache", Wording.count(counts[.hit])),
        ])
    }

    /// Outcomes of all URLs: images in order, then skipped ones by frequency, then open ones.
    private var outcomes: HTML {
        let ended = PrefetchOutcome.allCases.filter { counts[$0] > 0 }
        let skipped = ended.filter(\.isSkipped).sorted { (counts[$0], $1.rawValue) > (counts[$1], $0.rawValue) }
        var parts = (ended.filter { !$0.isSkipped } + skipped).map { ($0.name, counts[$0]) }
        let open = max(0, status.total - counts.finished)
        if open > 0 { parts.append((Self.open, open)) }
        return section(
            "How they ended", "\(Wording.count(status.total)) URLs, each counted once",
            parts.isEmpty
                ? nil
                : shares(parts) { count in
                    let share = count * 1000 < status.total ? "< 0.1%" : Wording.share(count, of: status.total)
                    return "<b>\(Wording.count(count))</b> <small>\(share)</small>"
                })
    }

    private var causesTable: HTML {
        let rows = causes.map { cause -> [HTML] in
            ["\(cause.name)", "\(Wording.count(cause.count))", "\(Wording.share(cause.count, of: counts.skipped))"]
        }
        return section(
            "Skipped, by cause", "\(Wording.count(counts.skipped)) URLs ended without an image",
            table(["cause", "URLs", "share"], rows))
    }

    private var hosts: HTML {
        let hosts = look.hosts.sorted { ($0.value.finished, $1.key) > ($1.value.finished, $0.key) }
        let rows = hosts.prefix(Self.maxHosts).map { name, host -> [HTML] in
            [
                "<bdi dir=\"ltr\">\(name)</bdi>", "\(Wording.count(host.finished))", "\(Wording.count(host.skipped))",
                "\(Wording.share(host.skipped, of: host.finished))", "\(Wording.bytes(host.bytes))",
            ]
        }
        let others =
            hosts.count > rows.count ? ". \(Wording.count(hosts.count - rows.count, "other host")) had fewer" : ""
        return section(
            "Hosts", "requests to each; cache hits make none" + others,
            table(["host", "asked", "skipped", "share", "received"], rows))
    }

    private var workers: HTML {
        let workers = look.counts.sorted { ($0.value.finished, $1.key) > ($1.value.finished, $0.key) }
        let rows = workers.prefix(Self.maxWorkers).map { name, counts -> [HTML] in
            [
                "<bdi dir=\"ltr\">\(name)</bdi>", "\(Wording.count(counts.finished))",
                "\(Wording.count(counts[.downloaded]))", "\(Wording.count(counts[.hit]))",
                "\(Wording.count(counts.skipped))", "\(Wording.bytes(counts.bytes))",
            ]
        }
        let rest = workers.count - rows.count
        return section(
            "Workers",
            "URLs that each was the first to settle"
                + (rest > 0 ? "; \(Wording.count(rest)) other workers had fewer" : ""),
            table(["worker", "finished", "downloaded", "hit", "skipped", "received"], rows))
    }

    private var namesTable: HTML {
        guard names.queries > 0 else { return "" }
        let ends = [
            ("answered", names.answered), ("no such name", names.noNames), ("resolver failed", names.failed),
            ("no answer", names.unanswered),
        ]
        return section(
            "Names", "queries of this batch's workers to their resolvers, as of their last heartbeats",
            table(
                ["queries", "how they ended"],
                ends.filter { $0.1 > 0 }.map { ["\(Wording.count($0.1))", "\($0.0)"] }))
    }

    private var images: HTML {
        func rows(_ counts: [(name: String, count: Int)]) -> [[HTML]] {
            counts.filter { $0.count > 0 }.map { ["\($0.name)", "\(Wording.count($0.count))"] }
        }
        let formats = rows(FetchText.formats(status.fetches))
        guard let formats = table(["format", "images"], formats) else { return "" }
        let sizes = table(["bytes", "images"], rows(FetchText.sizes(status.fetches))) ?? ""
        return section("Images", "what was downloaded, by its content", "\(formats)\(sizes)")
    }

    private var times: HTML {
        let (fetches, durations) = (status.fetches, status.fetches.durations)
        guard durations.total > 0 else { return "" }
        let ends = [("half of them in", 0.5), ("95% in", 0.95), ("99% in", 0.99)].map { name, share in
            (name, Wording.latency(durations.quantile(share) ?? 0))
        }
        let stages = FetchTally.Stage.allCases.map { (FetchText.name($0), fetches.microseconds($0)) }.filter {
            $0.1 > 0
        }
        let sum = Double(max(1, stages.reduce(0) { $0 + $1.1 }))
        return section(
            "How long transfers took",
            "the last requests of \(Wording.count(durations.total, "image")), "
                + "\(Wording.share(fetches.reused, of: durations.total)) over a connection that was there",
            "\(tiles(ends))\(shares(stages) { "<b>\(Wording.decimal(Double($0) / sum * 100, digits: 1))%</b>" })")
    }

    private var limits: HTML {
        let limits = status.limits
        guard limits.total > 0 else { return "" }
        let total = Double(limits.total)
        let parts = limits.causes.map { (LimitText.name($0), limits[$0]) }
        return section(
            "What limited it",
            "the time of workers that had its URLs, \(Wording.seconds(total / 1000)) in all, by what held them back",
            shares(parts) { "<b>\(Wording.decimal(Double($0) / total * 100, digits: 1))%</b>" })
    }

    private var failuresTable: HTML {
        let shown = failures.prefix(Self.maxFailures)
        let more = counts.skipped - shown.count
        let rows = shown.map { failure -> [HTML] in
            [
                "\(Wording.count(failure.line))", "\(failure.attempts)", "<b>\(BatchText.cause(of: failure))</b>",
                "\(HTML.url(failure.url))<small>\(ShownURL.text(failure.detail))</small>",
            ]
        }
        let all: HTML = """
            <p class="note">\(more > 0 ? "\(Wording.count(more)) more. " : "")All of them: \
            <code>prefetch-coord failures \(status.id)</code>; once more: <code>prefetch-coord retry \(status.id)</code></p>
            """
        return section(
            more > 0 ? "Some of what was skipped" : "What was skipped", "",
            table(["line", "tries", "cause", "URL"], rows).map { "\($0)\(all)" })
    }

    // MARK: - Elements

    /// A section with its heading; empty without content.
    /// * `note`: what the figures cover.
    private func section(_ title: String, _ note: String, _ content: HTML?) -> HTML {
        guard let content else { return "" }
        let about: HTML = note.isEmpty ? "" : "<p class=\"note\">\(note)</p>"
        return "<section>\n<h2>\(title)</h2>\n\(about)\(content)\n</section>\n"
    }

    private func tiles(_ figures: [(name: String, value: String)]) -> HTML {
        let tiles = figures.map { name, value -> HTML in "<div><dt>\(name)</dt><dd>\(value)</dd></div>\n" }
        return "<dl>\n\(tiles)</dl>\n"
    }

    /// The name of the segment for open URLs.
    private static let open = "open"

    /// Parts of a whole as a bar with a legend.
    private func shares(_ parts: [(name: String, count: Int)], _ value: (Int) -> HTML) -> HTML {
        let inks = parts.enumerated().map { $1.name == Self.open ? "none" : "k\($0 % 10 + 1)" }
        let bar = zip(parts, inks).map { part, ink -> HTML in
            "<i class=\"\(ink)\" style=\"flex-grow:\(part.count)\"></i>"
        }
        let legend = zip(parts, inks).map { part, ink -> HTML in
            "<li><i class=\"\(ink)\"></i>\(part.name) \(value(part.count))</li>\n"
        }
        return "<div class=\"stack\">\(bar)</div>\n<ul class=\"legend\">\(legend)</ul>"
    }

    /// Nil without rows.
    private func table(_ heads: [String], _ rows: [[HTML]]) -> HTML? {
        guard !rows.isEmpty else { return nil }
        func line(_ tag: HTML, _ cells: [HTML]) -> HTML {
            "<tr>\(cells.map { cell -> HTML in "<\(tag)>\(cell)</\(tag)>" })</tr>\n"
        }
        return """
            <div class="scroll"><table><thead>\(line("th", heads.map { "\($0)" }))</thead>
            <tbody>\(rows.map { line("td", $0) })</tbody></table></div>
            """
    }

    /// For light and dark mode, phones and paper.
    private static let style: HTML = """
        :root{--page:#f6f7f9;--card:#fff;--text:#1b2330;--soft:#5b6675;--line:#e2e6ec}
        @media (prefers-color-scheme:dark){:root{--page:#11151b;--card:#1a2029;--text:#e6eaf0;--soft:#98a4b3;--line:#2c3542}}
        @media print{:root{--page:#fff;--card:#fff;--text:#000;--soft:#444;--line:#ccc}*{print-color-adjust:exact}tr{break-inside:avoid}}
        body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif;font-variant-numeric:tabular-nums}
        main,footer{max-width:1120px;margin:0 auto;padding:12px 16px}
        h1{font-size:28px;margin:0;overflow-wrap:anywhere}h2{font-size:17px;margin:0}
        .note,small,dt,th,footer{color:var(--soft);font-size:13px;font-weight:400;margin:0 0 8px;overflow-wrap:anywhere}
        .state{font-size:14px;border:1px solid;border-radius:99px;padding:3px 10px}
        section,dl>div{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 18px;margin:12px 0}
        dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:0 12px;margin:0}
        dd{margin:0;font-size:22px;font-weight:600;white-space:nowrap}
        .stack{display:flex;gap:2px;height:24px;border-radius:6px;overflow:hidden}.stack i{min-width:3px}
        .legend{list-style:none;margin:12px 0 0;padding:0;display:flex;flex-wrap:wrap;gap:6px 24px}
        .legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:7px}
        .k1{background:#3b6fd8}.k2{background:#2a9d8f}.k3{background:#e8930c}.k4{background:#d9480f}.k5{background:#c2255c}
        .k6{background:#9c5bd1}.k7{background:#a08c72}.k8{background:#8fa7c9}.k9{background:#7a828d}.k10{background:#e58fb3}
        .none{background:var(--line)}.scroll{overflow-x:auto}code{font:13px monospace}
        table{border-collapse:collapse;width:100%}td small{display:block}
        th,td{padding:5px 14px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;text-align:left;overflow-wrap:anywhere}

        """
}
