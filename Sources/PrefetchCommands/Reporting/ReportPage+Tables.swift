internal import Prefetch
internal import WebImage

extension ReportPage {
    /// The most hosts and workers that are listed.
    private static let (mostHosts, mostWorkers) = (20, 64)

    /// A head and rows, each a list of cells; the columns named `numbers` are set to the right.
    private func table(_ heads: [String], numbers: Set<Int>, _ rows: [[HTML]], style: String = "") -> HTML {
        func cell(_ tag: HTML, _ column: Int, _ content: HTML, _ name: HTML = "") -> HTML {
            // Columns without a name are bars, for which a telephone has no room.
            let kind: HTML = numbers.contains(column) ? " class=\"n\"" : heads[column].isEmpty ? " class=\"b\"" : ""
            return "<\(tag)\(kind)\(name)>\(content)</\(tag)>"
        }
        let head = heads.enumerated().map { cell("th", $0, "\($1)") }
        let isInRows = !style.isEmpty
        let body = rows.map { row -> HTML in
            let cells = row.enumerated().map { column, content -> HTML in
                // Where a row is a block of its own the names of its columns stand in it.
                let isNamed =
                    isInRows && column > 0 && !heads[column].isEmpty && (style == "host" || column < row.count - 1)
                return cell("td", column, content, isNamed ? " data-h=\"\(heads[column])\"" : "")
            }
            return "<tr>\(cells)</tr>\n"
        }
        return """
            <div class="scroll"><table\(isInRows ? " class=\"rows \(style)\"" as HTML : "")><thead><tr>\(head)</tr></thead>
            <tbody>\(body)</tbody></table></div>
            """
    }

    /// A bar of a share, and nothing at all for nothing.
    private func bar(_ part: Int, of most: Int, _ ink: String) -> HTML {
        let share = most > 0 ? Double(part) / Double(most) * 100 : 0
        return "<span class=\"bar\"><i class=\"\(ink)\" style=\"width:\(part > 0 ? max(0.5, share) : 0)%\"></i></span>"
    }

    /// Why URLs were skipped.
    var causes: HTML {
        let causes = report.causes
        let rows = causes.map { cause -> [HTML] in
            let sample: HTML =
                cause.sample.map { "\(HTML.url($0.url, most: 90))<small>\(ShownURL.text($0.detail))</small>" }
                ?? "<small>no detail kept</small>"
            return [
                "<b>\(cause.name)</b>", "\(Wording.count(cause.count))",
                "\(Wording.share(cause.count, of: counts.skipped))", bar(cause.count, of: causes[0].count, "k4"),
                sample,
            ]
        }
        return section(
            "Skipped, by cause", "\(Wording.count(counts.skipped)) URLs ended without an image",
            causes.isEmpty
                ? nil : table(["cause", "URLs", "share", "", "one of them"], numbers: [1, 2], rows, style: "wide"))
    }

    /// What was asked of whom.
    var hosts: HTML {
        let hosts = report.look.hosts.sorted { ($0.value.finished, $1.key) > ($1.value.finished, $0.key) }
        guard let biggest = hosts.first else { return "" }
        func row(_ name: HTML, _ host: BatchLook.Host) -> [HTML] {
            [
                name, "\(Wording.count(host.finished))", bar(host.finished, of: biggest.value.finished, "k1"),
                "\(Wording.count(host.skipped))", "\(Wording.share(host.skipped, of: host.finished))",
                "\(Wording.bytes(host.bytes))",
            ]
        }
        var rows = hosts.prefix(Self.mostHosts).map { row("<bdi dir=\"ltr\">\($0.key)</bdi>", $0.value) }
        let rest = hosts.dropFirst(Self.mostHosts)
        if !rest.isEmpty {
            let sum = rest.reduce(into: BatchLook.Host(finished: 0, skipped: 0, bytes: 0)) { sum, host in
                sum.finished += host.value.finished
                sum.skipped += host.value.skipped
                sum.bytes += host.value.bytes
            }
            rows.append(row("<small>\(Wording.count(rest.count, "other host"))</small>", sum))
        }
        return section(
            "Hosts", "what was asked of each; hits ask nobody",
            table(
                ["host", "asked", "", "skipped", "share", "received"], numbers: [1, 3, 4, 5], rows, style: "host"))
    }

    /// What each worker did.
    var workers: HTML {
        let workers = report.look.counts.sorted { ($0.value.finished, $1.key) > ($1.value.finished, $0.key) }
        guard let biggest = workers.first else { return "" }
        func row(_ name: HTML, _ counts: PrefetchCounts) -> [HTML] {
            [
                name, "\(Wording.count(counts.finished))", bar(counts.finished, of: biggest.value.finished, "k2"),
                "\(Wording.count(counts[.downloaded]))", "\(Wording.count(counts[.hit]))",
                "\(Wording.count(counts.skipped))", "\(Wording.bytes(counts.bytes))",
            ]
        }
        var rows = workers.prefix(Self.mostWorkers).map { row("<bdi dir=\"ltr\">\($0.key)</bdi>", $0.value) }
        let rest = workers.dropFirst(Self.mostWorkers)
        if !rest.isEmpty {
            let sum = rest.reduce(into: PrefetchCounts()) { $0 += $1.value }
            rows.append(row("<small>\(Wording.count(rest.count, "other worker"))</small>", sum))
        }
        return section(
            "Workers", "URLs that each was the first to settle",
            table(
                ["worker", "finished", "", "downloaded", "hit", "skipped", "received"], numbers: [1, 3, 4, 5, 6], rows,
                style: "host"))
    }

    /// How big the images are, and of which formats.
    var sizes: HTML {
        guard let images = report.images, images.all.images > 0 else { return "" }
        let used = images.sizes.indices.filter { images.sizes[$0] > 0 }
        let range = (used.first ?? 0)...(used.last ?? 0)
        let most = images.sizes.max() ?? 0
        let columns = range.map { index -> HTML in
            let count = images.sizes[index]
            let height = count > 0 ? max(1, Double(count) / Double(max(1, most)) * 100) : 0
            return """
                <div><b>\(count > 0 ? Wording.count(count) : "")</b><i class="k1" style="height:calc((100% - 43px)*\(height)/100)"></i><small>\(sizeName(index))</small></div>

                """
        }
        let formats = images.formats.sorted { ($0.value.images, $1.key.rawValue) > ($1.value.images, $0.key.rawValue) }
        let rows = formats.map { format, sum -> [HTML] in
            [
                "<b>\(format.rawValue)</b>", "\(Wording.count(sum.images))",
                bar(sum.images, of: formats[0].value.images, "k2"),
                "\(Wording.share(sum.images, of: images.all.images))", "\(Wording.bytes(sum.bytes))",
            ]
        }
        var note = "\(Wording.count(images.all.images)) in the cache, \(Wording.bytes(images.all.bytes))"
        if images.elsewhere > 0 { note += "; \(Wording.count(images.elsewhere)) on other machines" }
        if images.missing > 0 { note += "; \(Wording.count(images.missing)) are not there any more" }
        return section(
            "Images", note,
            """
            <div class="two">
            <figure><figcaption>bytes of each: below</figcaption><div class="columns">\(columns)</div></figure>
            <figure><figcaption>formats, by their content</figcaption>\(table(["format", "images", "", "share", "bytes"], numbers: [1, 3, 4], rows))</figure>
            </div>
            """)
    }

    /// `10k`: what is below it and not below the one before.
    private func sizeName(_ index: Int) -> String {
        func name(_ bytes: Int) -> String { bytes < 1_000_000 ? "\(bytes / 1_000)k" : "\(bytes / 1_000_000)M" }
        let limits = ImageFigures.sizeLimits
        return index == limits.count ? "more" : name(limits[index])
    }

    /// How long transfers took: by the logs of the workers where they were given, otherwise by what the workers told Redis.
    var times: HTML {
        if let transfers = report.transfers, !transfers.totals.isEmpty {
            let ends: [(String, Double)] = [
                ("half of them in", transfers.percentile(0.5)), ("95% in", transfers.percentile(0.95)),
                ("99% in", transfers.percentile(0.99)), ("the slowest in", transfers.totals.last ?? 0),
            ]
            return times(
                Wording.count(transfers.totals.count, "transfer"), ends, stages: transfers.stages,
                reused: Wording.share(transfers.reused, of: transfers.totals.count))
        }
        let (fetches, durations) = (status.fetches, status.fetches.durations)
        guard durations.total > 0 else { return "" }
        let ends = [("half of them in", 0.5), ("95% in", 0.95), ("99% in", 0.99)].map { name, share in
            (name, (durations.quantile(share) ?? 0) * 1000)
        }
        return times(
            "the last requests of \(Wording.count(durations.total, "image"))", ends,
            stages: FetchTally.Stage.allCases.map { Double(fetches.stages[$0] ?? 0) / 1000 },
            reused: Wording.share(fetches.reused, of: durations.total))
    }

    /// * `stages`: milliseconds of all until the name was known, and so on.
    private func times(_ what: String, _ ends: [(String, Double)], stages: [Double], reused: String) -> HTML {
        let tiles = ends.map { name, value -> HTML in
            "<div class=\"tile\"><dt>\(name)</dt><dd>\(Self.milliseconds(value))</dd></div>\n"
        }
        let names = ["name", "connection", "TLS", "first byte", "the rest"]
        let inks = ["k3", "k2", "k7", "k1", "k8"]
        let sum = stages.reduce(0, +)
        let spent = stages.indices.filter { stages[$0] > 0 }
        let parts = spent.map { index -> HTML in
            "<i class=\"\(inks[index])\" style=\"flex-grow:\(stages[index])\"></i>"
        }
        let legend = spent.map { index -> HTML in
            let share = Wording.decimal(stages[index] / max(sum, 0.001) * 100, digits: 1)
            return "<li><i class=\"\(inks[index])\"></i>\(names[index]) <b>\(share)%</b></li>\n"
        }
        return section(
            "How long transfers took", "\(what), \(reused) over a connection that was there",
            """
            <dl class="tiles">
            \(tiles)</dl>
            <div class="stack">\(parts)</div>
            <ul class="legend">\(legend)</ul>
            """)
    }

    /// What took longest.
    var slowest: HTML {
        guard let slowest = report.transfers?.slowest, let first = slowest.first else { return "" }
        let rows = slowest.map { transfer -> [HTML] in
            let end = transfer.outcome ?? transfer.status.map { "\($0)" } ?? ""
            return [
                "\(Self.milliseconds(transfer.total))", bar(Int(transfer.total), of: Int(first.total), "k5"),
                "\(Self.milliseconds(transfer.firstByte))", "\(Wording.bytes(transfer.received))",
                "\(transfer.attempts)", "\(end)", HTML.url(transfer.url),
            ]
        }
        return section(
            "Slowest transfers", "",
            table(
                ["took", "", "first byte", "received", "tries", "end", "URL"], numbers: [0, 2, 3, 4], rows,
                style: "wide"))
    }

    /// What takes most room.
    var largest: HTML {
        guard let largest = report.images?.largest, let first = largest.first?.image?.bytes else { return "" }
        let rows = largest.map { line -> [HTML] in
            let image = line.image
            let pixels = image.flatMap { image in
                image.width.flatMap { width in image.height.map { "\(width) × \($0)" } }
            }
            return [
                "\(Wording.bytes(image?.bytes ?? 0))", bar(image?.bytes ?? 0, of: first, "k1"),
                "\(image?.format?.rawValue ?? "")", "\(pixels ?? "")", "\(Wording.count(line.result.line))",
                HTML.url(line.result.url),
            ]
        }
        return section(
            "Largest images", "",
            table(["size", "", "format", "pixels", "line", "URL"], numbers: [0, 3, 4], rows, style: "wide"))
    }

    /// What was skipped, line by line.
    var failures: HTML {
        let shown = report.failures.prefix(BatchReport.mostFailures)
        let rows = shown.map { failure -> [HTML] in
            [
                "\(Wording.count(failure.line))",
                "<b>\(DashState.cause(of: failure))</b>", "\(failure.attempts)",
                "\(HTML.url(failure.url))<small>\(ShownURL.text(failure.detail))</small>",
            ]
        }
        let more = counts.skipped - shown.count
        let all: HTML =
            "<p class=\"note\">\(more > 0 ? "\(Wording.count(more)) more. " : "")All of them: <code>prefetch-coord failures \(status.id)</code>; once more: <code>prefetch-coord retry \(status.id)</code></p>"
        return section(
            more > 0 ? "Some of what was skipped" : "What was skipped", "",
            shown.isEmpty
                ? nil : "\(table(["line", "cause", "tries", "URL"], numbers: [0, 2], rows, style: "wide"))\(all)")
    }

    /// `84 ms`, `1.8 s`
    private static func milliseconds(_ value: Double) -> String {
        value < 999.5 ? "\(Wording.decimal(value, digits: value < 9.95 ? 1 : 0)) ms" : Wording.seconds(value / 1000)
    }
}
