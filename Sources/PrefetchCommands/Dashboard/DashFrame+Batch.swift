internal import Prefetch
internal import WebImage

// The first view: progress, rates, workers, causes, hosts, and the newest line of the log.
extension DashFrame {
    func batchView(_ height: Int) -> [StyledLine] {
        guard let snapshot = state.snapshot else { return [] }
        var lines = summary(snapshot, height)
        guard height - lines.count >= 4 else { return lines }
        // In the remaining space: batches if the screen is large, workers, causes beside hosts, the log.
        let logHeight = isLarge ? 5 : height >= 20 ? 1 : 0
        var left = height - lines.count - logHeight - (logHeight > 1 ? 1 : 0)
        if isLarge {
            let count = min(state.queue.batches.count, 5)
            lines.append(rule)
            lines += batchTable(count, snapshot)
            left -= count + 2
        }
        let images = isLarge ? imagesLine(snapshot) : nil
        if images != nil { left -= 2 }
        let causes = state.causes
        let workers = state.workerRows
        let detailHeight = isLarge ? 10 : left >= 9 ? min(max(4, left - 3 - workers.count), 8) : 0
        let workerHeight = left - 2 - (detailHeight > 0 ? detailHeight + 1 : 0)
        lines.append(rule)
        lines += shortened(workers, to: max(1, workerHeight))
        let used = min(workers.count, max(1, workerHeight)) + 2
        if detailHeight > 0 {
            lines.append(rule)
            lines += details(
                causes,
                height: isLarge
                    ? max(detailHeight, min(left - used - 1, causes.count + 1)) : max(detailHeight, left - used - 1))
        }
        guard isLarge else {
            while lines.count < height - logHeight { lines.append(StyledLine()) }
            // Skipped URLs are in the tables above; other events are only in the log.
            let newest = state.log.last { $0.skipped == nil } ?? state.log.last
            return lines + (logHeight > 0 ? newest.map { [logLine($0, isShort: true)] } ?? [] : [])
        }
        if let images { lines += [rule, images] }
        lines.append(rule)
        return lines + state.log.suffix(max(0, height - lines.count)).map { logLine($0, isShort: false) }
    }

    /// Bar, counts, outcomes, load, graphs, and the cause of a delay.
    private func summary(_ snapshot: BatchSnapshot, _ height: Int) -> [StyledLine] {
        let counts = snapshot.status.counts
        var lines = [bar(snapshot.status)]
        // The two most important numbers fit the narrowest screen.
        var line = StyledLine(columns >= 60 ? "   finished " : " ", .dim)
        line.put("\(Wording.count(counts.finished)) / \(snapshot.status.totalText)", .bold)
        line.put(columns >= 60 ? "   skipped " : ", skipped ", .dim)
        line.put(
            columns >= 60 ? Wording.count(counts.skipped) : Self.short(counts.skipped),
            counts.skipped > 0 ? .warning : .plain)
        let share = " (\(Self.percent(counts.skipped, of: counts.finished)))"
        if counts.skipped > 0 && line.width + share.utf8.count <= columns { line.put(share) }
        lines.append(line)
        func put(_ parts: [(String, String)]) { lines.append(figures(parts)) }
        put(
            [.downloaded, .hit, .notModified].map { ($0.name, Wording.count(counts[$0])) } + [
                ("fetched", Wording.bytes(counts.bytes))
            ] + (snapshot.status.shards.map { [("shards", Wording.count($0.written))] } ?? []))
        if height >= 12 {
            let load = state.load
            let waitingNames = load.report.names?.waiting ?? 0
            put(
                [
                    ("in flight", Wording.count(max(0, load.report.inFlight - load.report.stalled)))
                ] + (load.report.stalled > 0 ? [("stalled", Wording.count(load.report.stalled))] : []) + [
                    ("checking", Wording.count(load.report.checking)),
                    ("waiting for host", Wording.count(load.report.waitingForHost)),
                    ("next try", Wording.count(load.report.retrying)),
                ] + (waitingNames > 0 ? [("names", Wording.count(waitingNames))] : []) + [
                    (isLarge ? "jobs in Redis" : "jobs", Wording.count(snapshot.waitingJobs))
                ])
        }
        lines += graphs
        if height >= 20 { lines.append(latencyLine(snapshot)) }
        let queue = [
            ("blacklist", Wording.count(state.queue.failedURLs, "URL")),
            ("redis", state.queue.usedMemory > 0 ? Wording.bytes(state.queue.usedMemory) : glyphs.none),
            ("average", averageRate(snapshot.status)),
            ("peak", state.history.peak > 0 ? "\(Wording.decimal(state.history.peak, digits: 0))/s" : glyphs.none),
            ("priority", snapshot.status.priority.rawValue),
        ]
        if isLarge { put([("cache", state.cache.text(columns: 40) ?? glyphs.none)] + queue) }
        if let stallReason = state.stallReason {
            lines.append(StyledLine(" ! " + glyphs.cells(stallReason), .warning))
        } else if let limit = state.limit, height >= 12 {
            lines.append(StyledLine("   " + glyphs.cells(LimitText.line(limit)), .accent))
        } else if height >= 20 && !isLarge {
            put(queue)
        }
        return lines
    }

    private func averageRate(_ status: BatchStatus) -> String {
        guard status.elapsed > 0 else { return glyphs.none }
        return "\(Wording.decimal(ProgressRate.mean(status), digits: 0))/s"
    }

    private func bar(_ status: BatchStatus) -> StyledLine {
        let finished = status.counts.finished
        let total = status.expectedTotal ?? status.total
        var tail = "  " + (status.shareText ?? glyphs.none)
        if status.state == .running {
            tail += "  ETA \(state.history.rate.eta(status, state.load).map(Self.span) ?? glyphs.none)"
        }
        let room = max(5, columns - 2 - DisplayWidth.columns(tail))
        let share = total == 0 ? 1 : min(1, Double(finished) / Double(total))
        let parts = glyphs.bar(share, columns: room)
        var line = StyledLine(" ")
        line.put(parts.full, status.state == .cancelled ? .bad : .good)
        line.put(parts.rest, .dim)
        line.put(tail, .bold)
        return line
    }

    private var graphs: [StyledLine] {
        var first = StyledLine(" images/s ", .dim)
        first.put(Self.left(rate(state.history), 6), .bold)
        var second = StyledLine(isWide ? "   MB/s " : " MB/s     ", .dim)
        second.put(Self.left(megabytes(state.history), 6), .bold)
        if isWide {
            let room = (columns - first.width - second.width - 4) / 2
            first.put(" " + glyphs.spark(state.history.images, columns: room), .accent)
            first.put(second)
            first.put(" " + glyphs.spark(state.history.bytes, columns: room), .accent)
            return [first]
        }
        first.put(" " + glyphs.spark(state.history.images, columns: columns - first.width - 2), .accent)
        second.put(" " + glyphs.spark(state.history.bytes, columns: columns - second.width - 2), .accent)
        return rows >= 20 ? [first, second] : [first]
    }

    /// Left-aligned, padded.
    static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - DisplayWidth.columns(text)))
    }

    /// 0.68%
    static func percent(_ part: Int, of whole: Int) -> String {
        guard whole > 0 else { return "0%" }
        let value = Double(part) * 100 / Double(whole)
        return "\(Wording.decimal(value, digits: value < 9.95 ? 2 : 1))%"
    }

    /// Causes, with hosts beside them if there is room. Both still add up when shortened.
    private func details(_ all: [NamedPart], height: Int) -> [StyledLine] {
        let leftWidth = isWide ? (columns - 3) / 2 : columns
        let left = causeLines(all, width: leftWidth, height: height)
        guard isWide else { return left }
        let right = hostTable(width: columns - leftWidth - 3).lines(
            Self.merged(state.hostRows, to: height - 1), cursor: nil)
        return (0..<min(height, max(left.count, right.count))).map { row in
            var line = row < left.count ? left[row] : StyledLine()
            line.move(to: leftWidth + 1)
            line.put(glyphs.wall, .dim)
            if row < right.count { line.put(right[row]) }
            return line
        }
    }

    private func causeLines(_ all: [NamedPart], width: Int, height: Int) -> [StyledLine] {
        let total = all.reduce(0) { $0 + $1.count }
        var causes = all
        if causes.count > height - 1 {
            let rest = causes[max(0, height - 2)...].reduce(0) { $0 + $1.count }
            causes = causes.prefix(max(0, height - 2)) + [NamedPart("other", rest, of: total)]
        }
        var head = StyledLine(" SKIPPED BY CAUSE", .dim)
        let number = Wording.count(total)
        head.move(to: width - number.utf8.count - 1)
        head.put(number, .dim)
        return [head] + causes.map { causeLine($0, total: total, width: width) }
    }

    func causeLine(_ cause: NamedPart, total: Int, width: Int) -> StyledLine {
        var line = StyledLine(" " + Self.left(glyphs.cells(cause.name), 15))
        let number = Wording.count(cause.count)
        let room = width - line.width - number.utf8.count - 4
        line.put(
            " " + glyphs.block(total == 0 ? 0 : Double(cause.count) / Double(total), columns: max(0, room)), .warning)
        line.move(to: width - number.utf8.count - 1)
        line.put(number, .bold)
        return line
    }

    /// At most `count` hosts; the rest is added to the row of the others.
    static func merged(_ rows: [DashHostRow], to count: Int) -> [DashHostRow] {
        guard rows.count > count, count > 0 else { return count > 0 ? rows : [] }
        var other = DashHostRow(
            name: "other hosts", host: BatchSnapshot.Host(finished: 0, skipped: 0, bytes: 0), isRemainder: true)
        for row in rows[(count - 1)...] {
            other.host.finished += row.host.finished
            other.host.skipped += row.host.skipped
            other.host.bytes += row.host.bytes
        }
        return rows.prefix(count - 1) + [other]
    }

    private func batchTable(_ count: Int, _ snapshot: BatchSnapshot) -> [StyledLine] {
        // The current batch's row agrees with the rest of the screen.
        let batches = state.queue.batches.map { $0.id == snapshot.status.id ? snapshot.status : $0 }
        let shown = window(batches.count, cursor: state.cursor, height: count)
        return DashTable<BatchStatus>(
            glyphs: glyphs, width: columns,
            columns: [
                .init("BATCH", 22, isRight: false) { ($0.id, $0.id == snapshot.status.id ? .bold : .plain) },
                .init("STATE", 9, isRight: false) {
                    $0.isEffectivelyPaused
                        ? ("paused", .warning) : ($0.state.rawValue, $0.state == .cancelled ? .bad : .plain)
                },
                .init("PRIORITY", 8, rank: 1, isRight: false) { ($0.priority.rawValue, .plain) },
                .init("FINISHED / TOTAL", 23) {
                    (
                        "\(Wording.count($0.counts.finished)) / \($0.isOpen ? "~" : "")\(Wording.count($0.expectedTotal ?? $0.total))",
                        .plain
                    )
                },
                .init("DONE", 7) { ($0.shareText ?? glyphs.none, .plain) },
                .init("HIT", 9) { (Wording.count($0.counts[.hit]), .plain) },
                .init("SKIPPED", 9) { (Wording.count($0.counts.skipped), $0.counts.skipped > 0 ? .warning : .plain) },
                .init("FETCHED", 8) { (Wording.bytes($0.counts.bytes), .plain) },
                .init("TOOK", 8) { (Self.span($0.elapsed), .plain) },
            ]
        ).lines(batches[shown], cursor: state.cursor - shown.lowerBound)
    }

    // MARK: Fetches

    /// Latency and cache; a large screen also shows the stages, and the cache with the queue's figures.
    private func latencyLine(_ snapshot: BatchSnapshot) -> StyledLine {
        let fetches = snapshot.status.fetches
        let latency = ("latency", FetchText.latency(fetches.durations) ?? glyphs.none)
        guard isLarge else {
            // The space left by the first: minus names and the blanks between them.
            let room = columns - DisplayWidth.columns(latency.1) - 21
            return figures([latency] + (state.cache.text(columns: room).map { [("cache", $0)] } ?? []))
        }
        let means = FetchTally.Stage.allCases.compactMap { stage in
            fetches.mean(stage).flatMap { $0 > 0 ? "\(FetchText.name(stage)) \(Self.milliseconds($0))" : nil }
        }
        let total = fetches.durations.total
        let reused = total > 0 ? [("reused", Wording.share(fetches.reused, of: total))] : []
        return figures([latency] + (means.isEmpty ? [] : [("mean ms", means.joined(separator: "  "))]) + reused)
    }

    private static func milliseconds(_ seconds: Double) -> String {
        Wording.decimal(seconds * 1000, digits: seconds < 0.009_95 ? 1 : 0)
    }

    /// Sizes and formats of the fetched images; nil without any.
    private func imagesLine(_ snapshot: BatchSnapshot) -> StyledLine? {
        let fetches = snapshot.status.fetches
        let total = fetches.sizes.reduce(0, +)
        guard total > 0 else { return nil }
        var line = StyledLine(" SIZES", .dim)
        for (title, parts) in [("", FetchText.sizes(fetches)), ("   TYPES", FetchText.formats(fetches))] {
            line.put(title, .dim)
            let parts = parts.filter { $0.count > 0 }
            for (part, share) in zip(parts, Share.texts(parts.map { Share(part: $0.count, whole: total) })) {
                guard line.width + part.name.utf8.count + share.utf8.count + 3 <= columns else { continue }
                line.put("  \(part.name) ", .dim)
                line.put(share)
            }
        }
        return line
    }

    private func figures(_ parts: [(String, String)]) -> StyledLine {
        var line = StyledLine("  ")
        for (name, value) in parts {
            guard line.width + name.utf8.count + DisplayWidth.columns(value) + 2 <= columns else { continue }
            line.put(" \(name) ", .dim)
            line.put(value)
            // Blanks beyond the screen would be cut, and a number with them.
            if line.width + 2 <= columns { line.put("  ") }
        }
        return line
    }
}
