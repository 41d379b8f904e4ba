internal import Redis

/// What a worker measured between two heartbeats: what ``LimitCause`` is derived from. Shares are percent of that time.
package struct WorkerFigures: Sendable, Equatable {
    /// The most hosts in ``hostWaits``.
    package static let maxHosts = 3

    /// Whether its last claim returned no job.
    package var lacksWork = false
    package var slotsFull = 0
    package var answering = 0
    package var rateLimited = 0
    package var received = 0
    /// The hosts with the most URLs that wait although slots are free.
    package var hostWaits: [HostWait] = []
    package var redisLongest = 0, redisBusy = 0
    /// Whether Redis refused its last report.
    package var isRefused = false
    package var fileOldest = 0, fileBusy = 0
    package var processors = 1, machineBusy = 0
    package var cpu = 0, checkCPU = 0, transferCPU = 0

    static let figures: [Figure<WorkerFigures>] = [
        Figure("lacks_work", \.lacksWork, "Whether its last claim returned no job."),
        Figure(
            "slots_full", \.slotsFull, unit: .percent, join: .highest,
            "Time in which all slots were in use and further URLs waited."),
        Figure(
            "answering", \.answering, unit: .percent, join: .highest,
            "Part of the transfers' time before the header of the response: connecting, and waiting for the server."),
        Figure(
            "rate_limited", \.rateLimited, unit: .percent, join: .highest,
            "Time in which the configured rate held transfers back."),
        Figure("received", \.received, unit: .bytesPerSecond, "Bytes of responses, headers included."),
        Figure("redis_longest", \.redisLongest, unit: .milliseconds, join: .highest, "The longest claim or report."),
        Figure(
            "redis_busy", \.redisBusy, unit: .percent, join: .highest, "Time in which a claim or report was pending."),
        Figure("redis_refuses", \.isRefused, "Whether Redis refused its last report."),
        Figure(
            "file_oldest", \.fileOldest, unit: .milliseconds, join: .highest, "Age of the oldest pending file call."),
        Figure(
            "file_busy", \.fileBusy, unit: .percent, join: .highest,
            "Time of the threads for checks in file calls, or in which bodies waited for their file, if that is more."),
        Figure("processors", \.processors, join: .highest, "Processors of the machine."),
        Figure(
            "machine_busy", \.machineBusy, unit: .percent, join: .highest,
            "Use of all processors of the machine, by whatever program."),
        Figure("cpu_share", \.cpu, unit: .percent, "Use of processors by the worker; 100 is one."),
        Figure("cpu_checks", \.checkCPU, unit: .percent, "Of that its threads for checks."),
        Figure("cpu_transfers", \.transferCPU, unit: .percent, join: .highest, "Of that the thread of its transfers."),
    ]

    package init() {}

    /// Adds the hosts of another worker; those with the most URLs stay.
    mutating func joinHosts(_ other: WorkerFigures) {
        for wait in other.hostWaits {
            if let index = hostWaits.firstIndex(where: { ($0.host, $0.reason) == (wait.host, wait.reason) }) {
                hostWaits[index].count += wait.count
            } else {
                hostWaits.append(wait)
            }
        }
        hostWaits = Array(
            hostWaits.sorted { ($0.count, $1.host) > ($1.count, $0.host) }.prefix(Self.maxHosts))
    }

    var hostWaitsText: String {
        hostWaits.prefix(Self.maxHosts).map { "\($0.reason.rawValue) \($0.count) \($0.host)" }.joined(separator: "\n")
    }

    /// Lines of `reason count host`; others are ignored.
    static func hostWaits(_ text: String) -> [HostWait] {
        text.split(atByte: "\n").prefix(maxHosts).compactMap { line in
            let words = line.split(atByte: " ", maxSplits: 2)
            guard words.count == 3, let reason = HostWait.Reason(rawValue: String(words[0])),
                let count = Int(plausible: words[1]), count > 0
            else { return nil }
            return HostWait(host: String(words[2].prefix(300)), reason: reason, count: count)
        }
    }
}
