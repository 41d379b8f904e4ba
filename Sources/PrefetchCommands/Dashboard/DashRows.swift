internal import Prefetch
internal import Redis
internal import WebImage

/// A row of the table of workers. All rows, including the remainder, add up to the batch.
struct DashWorkerRow: Sendable {
    var name: String
    var state: String
    var ink: Ink
    var report = WorkerReport()
    var counts = PrefetchCounts()
    var history = DashHistory()
    var cpu: Double?
    /// Milliseconds since its last heartbeat.
    var silence: Int?
    var isPresent = false
}

/// A host; all hosts and the remainder add up to the finished.
struct DashHostRow: Sendable {
    var name: String
    var host: BatchSnapshot.Host
    var history = DashHistory()
    var trouble: HostProblem?
    /// Whether it stands for hosts without their own count.
    var isRemainder = false

    var skippedShare: Double { host.finished > 0 ? Double(host.skipped) / Double(host.finished) : 0 }
}

extension DashState {
    /// Workers that are present, then those that are gone, then URLs without a worker.
    var workerRows: [DashWorkerRow] {
        guard let snapshot else { return [] }
        var rows: [DashWorkerRow] = []
        for name in Set(snapshot.counts.keys).union(snapshot.workers.keys) {
            var row = DashWorkerRow(name: name, state: "LOST", ink: .bad)
            row.counts = snapshot.counts[name] ?? PrefetchCounts()
            row.history = workerHistory[name] ?? DashHistory()
            if let worker = snapshot.workers[name] {
                row.report = worker.report
                row.isPresent = true
                row.cpu = cpu[name]?.share
                row.silence = worker.silence
                (row.state, row.ink) =
                    switch worker.condition {
                    case .overdue: ("OVERDUE", .bad)
                    case .held: ("HELD: \(worker.report.held?.reason ?? "")", .bad)
                    case .trouble: ("TROUBLE", .bad)
                    case .paused: ("PAUSED", .warning)
                    case .running: ("running", .good)
                    }
            } else if let end = ends[name] {
                if !end.isLost { (row.state, row.ink) = ("left", .dim) }
                row.silence = end.ended > 0 ? max(0, snapshot.at - end.ended) : nil
            }
            rows.append(row)
        }
        rows = matching(rows, \.name)
        sort(&rows, of: .workers) { row, order in
            switch order {
            case "img/s": (-row.history.rate.images, "")
            case "finished": (-Double(row.counts.finished), "")
            case "skipped": (-Double(row.counts.skipped), "")
            default: (row.isPresent ? 0 : 1, row.name)
            }
        }
        if filter.isEmpty, let rest = snapshot.workerParts.last(where: { $0.worker == nil }) {
            var row = DashWorkerRow(name: "(no worker)", state: "", ink: .dim)
            row.counts = rest.counts
            rows.append(row)
        }
        return rows
    }

    /// Causes of skipped URLs, in the order that was chosen.
    var causes: [NamedPart] {
        var causes = snapshot?.causes ?? []
        sort(&causes, of: .failures) { cause, order in
            order == "name" ? (0, cause.name) : (-Double(cause.count), cause.name)
        }
        return causes
    }

    /// Hosts by URLs, then what is not counted by host, then URLs without a request: together the batch.
    var hostRows: [DashHostRow] {
        guard let snapshot else { return [] }
        let troubled = Dictionary(troubledHosts.map { (ByteText($0.host), $0) }) { first, _ in first }
        let hosts = snapshot.hosts
        var rows = hosts.map { name, host in
            DashHostRow(name: name, host: host, history: hostHistory[name] ?? DashHistory(), trouble: troubled[name])
        }
        if snapshot.status.state == .running {
            // No URL has ended for a host that has never responded.
            for (name, host) in troubled where host.state != .slow && hosts[name.text] == nil {
                let none = BatchSnapshot.Host(finished: 0, skipped: 0, bytes: 0)
                rows.append(
                    DashHostRow(
                        name: name.text, host: none, history: hostHistory[name.text] ?? DashHistory(), trouble: host))
            }
        }
        rows = matching(rows, \.name)
        sort(&rows, of: .hosts) { row, order in
            switch order {
            case "img/s": (-row.history.rate.images, row.name)
            case "skipped": (-row.skippedShare, row.name)
            case "name": (0, row.name)
            default: (-Double(row.host.finished), row.name)
            }
        }
        guard filter.isEmpty else { return rows }
        let counts = snapshot.status.counts
        var none = BatchSnapshot.Host(finished: 0, skipped: 0, bytes: 0)
        for outcome in PrefetchOutcome.allCases where !HostTally.counts(outcome) {
            none.finished += counts[outcome]
            if outcome.isSkipped { none.skipped += counts[outcome] }
        }
        func rest(_ whole: Int, _ part: KeyPath<BatchSnapshot.Host, Int>) -> Int {
            whole - none[keyPath: part] - snapshot.hosts.values.reduce(0) { $0 + $1[keyPath: part] }
        }
        let other = BatchSnapshot.Host(
            finished: rest(counts.finished, \.finished), skipped: rest(counts.skipped, \.skipped),
            bytes: rest(counts.bytes, \.bytes))
        // Of hosts beyond those that a batch counts, and of the last second of killed workers.
        if other.finished != 0 { rows.append(DashHostRow(name: "(not by host)", host: other, isRemainder: true)) }
        if none.finished != 0 { rows.append(DashHostRow(name: "(no request)", host: none, isRemainder: true)) }
        return rows
    }

    /// Known details of the selected cause, by line.
    var openFailures: [FailureDetail] {
        let all = failures.values.filter { cause == nil || BatchText.cause(of: $0) == cause }
        return matching(all.sorted { $0.line < $1.line }, \.url)
    }

    var logLines: [DashLogLine] { matching(log, \.text) }

    /// Number of rows in the view that can be selected.
    var rowCount: Int {
        switch view {
        case .batch: queue.batches.count
        case .workers: workerRows.count
        case .failures: cause == nil ? causes.count : openFailures.count
        case .hosts: hostRows.count
        case .log: logLines.count
        }
    }

    /// The selected row.
    var cursor: Int { min(max(0, rowCount - 1), cursors[view] ?? 0) }

    private func matching<Row>(_ rows: [Row], _ text: KeyPath<Row, String>) -> [Row] {
        let isInverse = filter.hasPrefix("!")
        let wanted = (isInverse ? String(filter.dropFirst()) : filter).lowercased()
        guard !wanted.isEmpty else { return rows }
        return rows.filter { $0[keyPath: text].lowercased().contains(wanted) != isInverse }
    }

    private func sort<Row>(_ rows: inout [Row], of view: DashView, by key: (Row, String) -> (Double, String)) {
        let order = view.sortKeys[(sortIndexes[view] ?? 0) % view.sortKeys.count]
        rows.sort { key($0, order) < key($1, order) }
        if isReversed { rows.reverse() }
    }
}
