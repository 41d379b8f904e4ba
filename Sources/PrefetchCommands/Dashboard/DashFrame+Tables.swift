internal import Prefetch
internal import Redis
internal import WebImage

// The other views: workers, failures, hosts, the log.
extension DashFrame {
    func workersView(_ height: Int) -> [StyledLine] {
        let rows = state.workerRows
        let shown = window(rows.count, cursor: state.cursor, height: height - 3)
        var lines = [rule] + workerTable.lines(rows[shown], cursor: state.cursor - shown.lowerBound)
        lines.append(sumLine(rows.map { ($0.counts.finished, $0.counts.skipped, $0.counts.bytes) }))
        return lines
    }

    /// The workers that fit, and the rest as one row, so that they still add up.
    func shortened(_ rows: [DashWorkerRow], to height: Int) -> [StyledLine] {
        guard rows.count > height else { return workerTable.lines(rows) }
        var rest = DashWorkerRow(name: "+\(rows.count - height + 1) more", state: "", ink: .dim)
        for row in rows[(height - 1)...] {
            for outcome in PrefetchOutcome.allCases { rest.counts[outcome] += row.counts[outcome] }
            rest.counts.bytes += row.counts.bytes
        }
        return workerTable.lines(rows.prefix(height - 1) + [rest])
    }

    private var workerTable: DashTable<DashWorkerRow> {
        var columns: [DashTable<DashWorkerRow>.Column] = [
            .init("WORKER", 10, isRight: false) { (glyphs.cells($0.name), $0.isPresent ? .plain : .dim) },
            .init("STATE", 7, isRight: false) { ($0.state, $0.ink) },
            .init("FLIGHT", state.workerRows.contains { $0.report.concurrencyReason != nil } ? 14 : 7, rank: 2) { row in
                guard row.isPresent else { return (glyphs.none, .dim) }
                let auto = row.report.concurrencyReason == nil ? "" : "auto "
                let limit = row.report.maxConcurrentDownloads.map { "/\(auto)\($0)" } ?? ""
                return ("\(row.report.transferring)\(limit)", .plain)
            },
            .init("IMG/S", 6, rank: 1) { (rate($0.history), .plain) },
        ]
        if isLarge {
            columns.append(
                .init("LAST 24 S", 24, rank: 3, isRight: false) { row in
                    (glyphs.spark(row.history.images, columns: 24), .accent)
                })
        }
        columns += [
            .init("MB/S", 6, rank: 4) { (megabytes($0.history), .plain) },
            .init("FINISHED", 9) { (Self.short($0.counts.finished), .plain) },
            .init("SKIPPED", 7) { (Self.short($0.counts.skipped), $0.counts.skipped > 0 ? .warning : .plain) },
            .init("RSS", 6, rank: 5) { row in
                (
                    row.report.residentBytes.map { Wording.bytes($0).filter { $0 != " " } }
                        ?? glyphs.none,
                    .plain
                )
            },
            .init("CPU", 4, rank: 6) { row in
                (row.cpu.map { "\(Wording.decimal($0 * 100, digits: 0))%" } ?? glyphs.none, .plain)
            },
            .init("BEAT", 6, rank: 3) { row in
                (row.silence.map { Self.span(Double($0) / 1000) } ?? glyphs.none, row.isPresent ? .plain : .dim)
            },
        ]
        return DashTable(glyphs: glyphs, width: self.columns, columns: columns)
    }

    /// The total of the rows, which equals the batch's counts.
    private func sumLine(_ rows: [(finished: Int, skipped: Int, bytes: Int)]) -> StyledLine {
        func sum(_ part: KeyPath<(finished: Int, skipped: Int, bytes: Int), Int>) -> Int {
            rows.reduce(0) { $0 + $1[keyPath: part] }
        }
        var line = StyledLine(" \(Wording.count(rows.count, "row")): finished ", .dim)
        line.put(Wording.count(sum(\.finished)), .bold)
        line.put(", skipped ", .dim)
        line.put(Wording.count(sum(\.skipped)), .bold)
        // Omitted rather than cut: a truncated number would be wrong.
        let fetched = ", \(Wording.bytes(sum(\.bytes))) fetched"
        if line.width + fetched.utf8.count <= columns { line.put(fetched, .dim) }
        return line
    }

    func hostsView(_ height: Int) -> [StyledLine] {
        let rows = state.hostRows
        let shown = window(rows.count, cursor: state.cursor, height: height - 3)
        var lines = [rule] + hostTable(width: columns).lines(rows[shown], cursor: state.cursor - shown.lowerBound)
        lines.append(sumLine(rows.map { ($0.host.finished, $0.host.skipped, $0.host.bytes) }))
        return lines
    }

    func hostTable(width: Int) -> DashTable<DashHostRow> {
        var columns: [DashTable<DashHostRow>.Column] = [
            .init(width < columns ? "TOP HOSTS" : "HOST", 12, isRight: false) {
                (glyphs.cells($0.name), $0.isRemainder ? .dim : inkOfHost($0.trouble))
            },
            .init("DONE", 8) { (Self.short($0.host.finished), .plain) },
            .init("IMG/S", 5, rank: 1) { ($0.isRemainder ? glyphs.none : rate($0.history), .plain) },
        ]
        columns[0].keepsEnd = true
        if width >= 70 {
            columns += [
                .init("MB/S", 6, rank: 4) { ($0.isRemainder ? glyphs.none : megabytes($0.history), .plain) },
                .init("FETCHED", 8, rank: 3) { (Wording.bytes($0.host.bytes), .plain) },
                .init("SKIPPED", 8) { (Self.short($0.host.skipped), $0.host.skipped > 0 ? .warning : .plain) },
            ]
        }
        columns.append(
            .init("FAIL", 5) { row in
                let share = row.skippedShare
                let text = Wording.decimal(share * 100, digits: share < 0.0995 && share > 0 ? 1 : 0) + "%"
                return (text, share >= 0.5 ? .bad : share > 0 ? .warning : .plain)
            })
        columns.append(
            .init("STATE", 16, rank: 2, isRight: false) { (Self.stateOfHost($0), inkOfHost($0.trouble)) })
        return DashTable(glyphs: glyphs, width: width, columns: columns)
    }

    private func inkOfHost(_ trouble: HostProblem?) -> Ink {
        switch trouble?.state {
        case .silent: .bad
        case .busy, .slow: .warning
        case .good, nil: .plain
        }
    }

    /// The state as in `status --json`, and the remaining back-off.
    private static func stateOfHost(_ row: DashHostRow) -> String {
        guard let trouble = row.trouble, trouble.state != .good else {
            // A host that only returns errors is requested as often as the others.
            return row.isRemainder || row.skippedShare >= 0.5 ? "" : "ok"
        }
        let name = trouble.state.rawValue
        if trouble.state == .slow { return "\(name), \(short(trouble.failures)) at once" }
        return trouble.remaining > 0 ? "\(name) \(span(trouble.remaining.rounded(.up)))" : "\(name), retrying"
    }

    func failuresView(_ height: Int) -> [StyledLine] {
        let causes = state.causes
        let total = causes.reduce(0) { $0 + $1.count }
        guard let cause = state.cause else {
            var lines = [rule]
            var head = StyledLine(" SKIPPED BY CAUSE", .dim)
            head.move(to: columns - Wording.count(total).utf8.count - 1)
            head.put(Wording.count(total), .bold)
            lines.append(head)
            if causes.isEmpty { lines.append(StyledLine(" nothing was skipped", .good)) }
            let room = max(1, min(causes.count, (height - 3) * 2 / 3))
            let shown = window(causes.count, cursor: state.cursor, height: room)
            for index in shown {
                let line = causeLine(causes[index], total: total, width: columns)
                lines.append(index == state.cursor ? line.selected(over: columns) : line)
            }
            lines.append(rule)
            return lines + samples(height - lines.count, cursor: nil)
        }
        let count = causes.first { $0.name == cause }?.count ?? 0
        let title = StyledLine(
            " failures \(glyphs.path) \(cause)   \(Wording.count(count)) of \(Wording.count(total)) skipped", .bold)
        return [title] + samples(height - 1, cursor: state.cursor)
    }

    /// A sample of skipped URLs, with the selected one in full.
    private func samples(_ height: Int, cursor: Int?) -> [StyledLine] {
        let rows = state.openFailures
        guard height >= 2 else { return [] }
        guard !rows.isEmpty else {
            return state.causes.isEmpty ? [] : [StyledLine(" no entries were read yet", .dim)]
        }
        let detailHeight = cursor != nil && height >= 8 ? 4 : 0
        let shown = window(rows.count, cursor: cursor ?? 0, height: height - 1 - detailHeight)
        let table = DashTable<FailureDetail>(
            glyphs: glyphs, width: columns,
            columns: [
                .init("LINE", 8) { (Wording.count($0.line), .dim) },
                .init("CAUSE", 14, rank: 1, isRight: false) { (BatchText.cause(of: $0), .warning) },
                .init("TRIES", 5, rank: 2) { ("\($0.tries)", .plain) },
                .init("URL", max(10, columns), isRight: false) { (glyphs.cells(TerminalText.url($0.url)), .plain) },
            ])
        var lines = failureLines(table, rows[shown], cursor: cursor.map { $0 - shown.lowerBound })
        if let cursor, detailHeight > 0, rows.indices.contains(cursor) {
            let detail = rows[cursor]
            lines.append(rule)
            lines.append(
                StyledLine(" line \(Wording.count(detail.line))  \(glyphs.cells(TerminalText.url(detail.url)))", .bold))
            lines.append(
                StyledLine(" \(BatchText.cause(of: detail)), \(Wording.count(detail.tries, "request"))", .warning))
            lines.append(StyledLine(" " + glyphs.cells(ShownURL.text(detail.detail))))
        }
        return lines
    }

    /// The URL gets the space that the other columns leave.
    private func failureLines(
        _ table: DashTable<FailureDetail>, _ rows: ArraySlice<FailureDetail>, cursor: Int?
    ) -> [StyledLine] {
        var table = table
        if columns < 60 { table.columns.remove(at: 2) }
        let others = table.columns.dropLast().reduce(1) { $0 + $1.width + 1 }
        table.columns[table.columns.count - 1].width = max(4, columns - others - 1)
        return table.lines(rows, cursor: cursor)
    }

    func logView(_ height: Int) -> [StyledLine] {
        let lines = state.logLines
        var shown = [rule]
        if lines.isEmpty { shown.append(StyledLine(" nothing has happened yet", .dim)) }
        // The newest at the bottom, until the cursor moves up.
        let cursor = state.cursors[.log] == nil ? max(0, lines.count - 1) : state.cursor
        for index in window(lines.count, cursor: cursor, height: height - 1) {
            let line = logLine(lines[index], isShort: columns < 72)
            shown.append(state.cursors[.log] != nil && index == cursor ? line.selected(over: columns) : line)
        }
        return shown
    }

    func logLine(_ line: DashLogLine, isShort: Bool) -> StyledLine {
        var styled = StyledLine(" \(clock(line.at)) ", .dim)
        let ink: Ink =
            switch line.level {
            case .info: .plain
            case .good: .good
            case .warning: .warning
            case .bad: .bad
            }
        if !isShort { styled.put(Self.left(line.level.rawValue, 6), ink) }
        let text = DisplayWidth.cutWords(glyphs.cells(line.text), to: max(4, columns - styled.width), mark: glyphs.mark)
        styled.put(text, isShort ? ink : .plain)
        return styled
    }
}
