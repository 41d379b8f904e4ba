internal import Prefetch
internal import Redis
internal import WebImage

/// What holds a run back, in words. Every view has its words from here.
enum LimitText {
    /// `limited by politeness (--max-per-host), 3 of 4 workers: 812 URLs wait for their hosts, a.example 400 (--max-per-host)`: the option
    /// comes before the figures, which a narrow screen cuts.
    static func line(_ limit: RunLimit) -> String {
        guard limit.cause != .nothing && limit.cause != .starting else { return detail(limit) }
        var text = "limited by \(name(limit.cause))"
        if let option = option(limit) { text += " (\(option))" }
        if limit.workers < limit.allWorkers { text += ", \(limit.workers) of \(limit.allWorkers) workers" }
        return "\(text): \(detail(limit))"
    }

    static func name(_ cause: LimitCause) -> String {
        switch cause {
        case .starting: "its start"
        case .paused: "a pause"
        case .fault: "a local fault"
        case .list: "the list"
        case .redis: "Redis"
        case .disk: "the disk"
        case .checking: "this machine's processors for checking"
        case .processor: "this machine's processors for transfers"
        case .politeness: "politeness"
        case .resolver: "the resolver"
        case .rate: "the configured rate"
        case .servers: "the servers' answers"
        case .link: "the link or the servers' sending rate"
        case .workers: "the workers"
        case .nothing: "nothing for long"
        }
    }

    /// The figures of its cause, one sentence without a full stop.
    static func detail(_ limit: RunLimit) -> String {
        let figures = limit.report.figures
        switch limit.cause {
        case .starting: return "the workers are starting"
        case .paused: return pause(limit)
        case .fault: return limit.report.trouble.isEmpty ? "a worker waits" : TerminalText.escaped(limit.report.trouble)
        case .list: return list(limit)
        case .redis:
            return figures.isRefused
                ? "it refuses reports" : "it answers after \(Wording.count(figures.redisLongest)) ms"
        case .disk:
            return figures.fileOldest > LimitCause.Threshold.fileOldest
                ? "a file call has not returned for \(Wording.seconds(Double(figures.fileOldest) / 1000))"
                : "file calls take \(figures.fileBusy)% of the time of the checks"
        case .checking: return "\(processors(figures)); checking takes \(figures.checkCPU)% of one"
        case .processor: return "\(processors(figures)); a thread of transfers takes \(figures.transferCPU)% of one"
        case .politeness:
            let hosts = figures.hostWaits.map(host).joined(separator: ", ")
            return "\(Wording.count(limit.report.waitingForHost, "URL")) wait for their hosts"
                + (hosts.isEmpty ? "" : ", \(hosts)")
        case .resolver:
            let names = limit.report.names ?? NameReport()
            return names.silence > 0 ? "it does not answer" : "\(Wording.count(names.waiting, "name")) wait for it"
        case .rate: return "it holds transfers back at \(rate(figures))"
        case .servers:
            if limit.report.stalled > limit.report.transferring {
                return "\(Wording.count(limit.report.stalled, "transfer")) receive no data"
            }
            return "\(slots(limit)), \(figures.answering)% of it before the first byte"
        case .link: return "\(slots(limit)), receiving, \(rate(figures)) in all"
        case .workers: return "none sends a heartbeat"
        case .nothing: return "nothing holds the run back for long"
        }
    }

    /// The option that changes it; nil if none does.
    static func option(_ limit: RunLimit) -> String? {
        let figures = limit.report.figures
        switch limit.cause {
        case .paused: return "prefetch-coord resume"
        case .workers: return "prefetch-worker"
        case .list: return limit.list == .stopped ? "submit --resume" : nil
        case .redis: return figures.isRefused ? "prefetch-coord fsck" : nil
        case .disk: return figures.fileOldest > LimitCause.Threshold.fileOldest ? "--cache" : "--durability"
        case .checking: return "--validate"
        // One thread has all transfers of a worker: with processors left, more workers help.
        case .processor: return figures.machineBusy < LimitCause.Threshold.machineBusy ? "--workers" : nil
        case .politeness: return figures.hostWaits.first.map { option($0.reason) } ?? "--max-per-host"
        case .rate: return "--limit-rate"
        case .servers, .link: return "--max-concurrent-downloads"
        case .resolver: return "--dns-servers"
        case .starting, .fault, .nothing: return nil
        }
    }

    private static func pause(_ limit: RunLimit) -> String {
        switch (limit.isBatchPaused, limit.isQueuePaused) {
        case (true, true): "the batch is paused, and so is the whole queue"
        case (true, false): "the batch is paused"
        case (false, true): "the whole queue is paused"
        case (false, false): "\(Wording.count(limit.workers, "worker")) paused"
        }
    }

    private static func list(_ limit: RunLimit) -> String {
        switch limit.list {
        case .full: return "its feeder waits for memory of Redis"
        case .stopped: return "nothing feeds it"
        case .feeding: return "workers take URLs faster than they are queued"
        case .queued:
            var parts: [String] = []
            if limit.report.transferring + limit.report.stalled > 0 {
                parts.append("\(Wording.count(limit.report.transferring + limit.report.stalled)) in flight")
            }
            if limit.report.checking > 0 { parts.append("\(Wording.count(limit.report.checking)) being checked") }
            if limit.report.retrying > 0 {
                parts.append("\(Wording.count(limit.report.retrying)) before their next try")
            }
            return "nothing is left to claim" + (parts.isEmpty ? "" : ", \(parts.joined(separator: ", "))")
        }
    }

    private static func processors(_ figures: WorkerFigures) -> String {
        "\(Wording.count(figures.processors, "processor")) \(figures.machineBusy)% busy"
    }

    private static func slots(_ limit: RunLimit) -> String {
        "\(Wording.count(limit.report.maxConcurrentDownloads ?? 0, "slot")) in use \(limit.report.figures.slotsFull)% of the time"
    }

    private static func rate(_ figures: WorkerFigures) -> String {
        "\(Wording.decimal(Double(figures.received) / 1e6, digits: 1)) MB/s"
    }

    /// `a.example 400 (--max-per-host)`
    private static func host(_ wait: HostWait) -> String {
        "\(TerminalText.escaped(wait.host)) \(Wording.count(wait.count)) (\(reason(wait.reason)))"
    }

    private static func reason(_ reason: HostWait.Reason) -> String {
        switch reason {
        case .transfers: "--max-per-host"
        case .rate: "--rate-per-host"
        case .backOff: "back-off"
        case .silent: "does not respond"
        case .slow: "answers slowly"
        case .robots: "robots.txt"
        }
    }

    private static func option(_ reason: HostWait.Reason) -> String? {
        switch reason {
        case .transfers: "--max-per-host"
        case .rate: "--rate-per-host"
        case .backOff, .slow, .silent: nil
        case .robots: "--robots"
        }
    }
}
