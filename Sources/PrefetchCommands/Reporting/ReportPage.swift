internal import Prefetch
internal import WebImage

/// A report as a page. It has no script and asks for nothing: the policy in its head would keep a browser from either, whatever a URL was.
struct ReportPage {
    let report: BatchReport

    var status: BatchStatus { report.look.status }
    var counts: PrefetchCounts { status.counts }

    /// The whole page.
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
        <style>\(ReportStyle.sheet)</style>
        </head>
        <body>
        <main>
        \(header)\(tiles)\(outcomes)\(curves)\(causes)\(hosts)\(sizes)\(times)\(slowest)\(largest)\(workers)\(failures)
        </main>
        \(footer)
        </body>
        </html>

        """
    }

    /// A part with its heading; nothing where there is nothing in it.
    ///
    /// * `note`: what the figures are of.
    func section(_ title: String, _ note: String = "", _ content: HTML?) -> HTML {
        guard let content else { return "" }
        let about: HTML = note.isEmpty ? "" : "<p class=\"note\">\(note)</p>"
        return "<section>\n<h2>\(title)</h2>\n\(about)\(content)\n</section>\n"
    }

    private var header: HTML {
        let state: HTML =
            "<span class=\"state \(status.isHeld ? "held" : status.state.rawValue)\">\(status.isHeld ? "paused" : BatchText.ended(status))</span>"
        var facts: [HTML] = ["<span>\(UTCTime.text(milliseconds: status.created))</span>"]
        facts.append("<span>\(status.ended > 0 ? "took" : "for") \(Wording.seconds(status.elapsed))</span>")
        if !status.listPath.isEmpty { facts.append("<span>list <bdi>\(status.listPath)</bdi></span>") }
        facts.append("<span>checked: \(status.options.validate)</span>")
        let merged: HTML = report.merged.map { "<p class=\"note\">\($0)</p>" } ?? ""
        return """
            <header>
            <h1>\(status.id) \(state)</h1>
            <p class="facts">\(facts)</p>
            \(merged)</header>

            """
    }

    private var tiles: HTML {
        let images = counts.finished - counts.skipped
        let seconds = max(status.elapsed, 0.001)
        func tile(_ name: String, _ value: String, _ about: String, _ style: String = "") -> HTML {
            "<div class=\"tile \(style)\"><dt>\(name)</dt><dd>\(value)<small>\(about)</small></dd></div>\n"
        }
        let requests = counts[.downloaded] + counts[.notModified]
        return """
            <dl class="tiles">
            \(tile("images", Wording.count(images), "of \(Wording.count(status.total)) URLs"))
            \(tile(
                "skipped", Wording.count(counts.skipped),
                counts.finished > 0 ? "\(Wording.share(counts.skipped, of: counts.finished)) of what ended" : "none ended yet",
                counts.skipped > 0 ? "bad" : ""))
            \(tile(
                "rate", "\(Wording.decimal(Double(counts.finished) / seconds, digits: 0))/s",
                "URLs in \(Wording.seconds(status.elapsed))"))
            \(tile(
                "downloaded", Wording.bytes(counts.bytes),
                counts[.downloaded] > 0 ? "\(Wording.bytes(counts.bytes / counts[.downloaded])) an image" : "no image"))
            \(tile("from the cache", Wording.count(counts[.hit]), "\(Wording.count(requests)) asked of hosts"))
            </dl>

            """
    }

    /// How all URLs ended, as parts of a bar and in words.
    private var outcomes: HTML {
        // Images in their order, then what there is most of.
        let ended = PrefetchOutcome.allCases.filter { counts[$0] > 0 }
        let skipped = ended.filter(\.isSkipped).sorted { (counts[$0], $1.rawValue) > (counts[$1], $0.rawValue) }
        var parts = (ended.filter { !$0.isSkipped } + skipped).map { ($0.name, counts[$0], Self.ink($0)) }
        let open = max(0, status.total - counts.finished)
        if open > 0 { parts.append(("open", open, "none")) }
        let bar = parts.map { name, count, ink -> HTML in
            "<i class=\"\(ink)\" style=\"flex-grow:\(count)\" title=\"\(name) \(Wording.count(count))\"></i>"
        }
        let legend = parts.map { name, count, ink -> HTML in
            """
            <li><i class="\(ink)"></i>\(name) <b>\(Wording.count(count))</b> <small>\(Self.share(count, of: status.total))</small></li>

            """
        }
        return section(
            "How they ended", "\(Wording.count(status.total)) URLs, each counted once",
            parts.isEmpty ? nil : "<div class=\"stack\">\(bar)</div>\n<ul class=\"legend\">\(legend)</ul>")
    }

    /// The share of something that there is: never nothing.
    private static func share(_ part: Int, of all: Int) -> String {
        all > 0 && part * 1000 < all ? "< 0.1%" : Wording.share(part, of: all)
    }

    /// The class of a colour: what ended well is blue and green, what did not is warm; the names stand beside them.
    private static func ink(_ outcome: PrefetchOutcome) -> String {
        switch outcome {
        case .downloaded: "k1"
        case .hit: "k2"
        case .notModified: "k3"
        case .httpError: "k4"
        case .timeout: "k5"
        case .badImage, .mismatch, .tooLarge: "k6"
        case .truncated: "k10"
        case .dns, .connect, .tls: "k7"
        case .blacklisted, .refused, .notCached: "k8"
        case .invalidURL, .poison, .cancelled, .unsupported, .unknown: "k9"
        }
    }

    private var curves: HTML {
        guard let stored = report.images?.stored, !stored.isEmpty else { return "" }
        let (images, bytes) = ReportCurve.pair(stored, window: report.window)
        return section(
            "Downloads over time", "by the time at which each image was stored",
            """
            <div class="two">
            <figure><figcaption>images a second</figcaption>\(images.svg)</figure>
            <figure><figcaption>MB a second</figcaption>\(bytes.svg)</figure>
            </div>
            """)
    }

    private var footer: HTML {
        """
        <footer>
        <p>\(status.id), as it was at \(UTCTime.text(milliseconds: report.look.at)). prefetch \(PrefetchVersion)</p>
        </footer>
        """
    }
}
